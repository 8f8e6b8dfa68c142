//! Same-thread cost of a hop.
use std::time::Instant;
use waystage::*;
fn main() {
    let bus: Bus<[u64; 8]> =
        Bus::start(BusSettings { workers: 0, ..BusSettings::default() }).unwrap();
    bus.add_stage("a", StageSettings::default(), |_| Ok(())).unwrap();
    let slip = bus.slip(["a"]).unwrap();
    let mut p = bus.publisher();
    for _ in 0..5 {
        let (mut tp, mut tc) = (0, 0);
        for _ in 0..2000 {
            let t = Instant::now();
            for i in 0..1000 {
                p.publish(Envelope::new([i; 8], slip.clone())).unwrap();
            }
            tp += t.elapsed().as_nanos();
            let t = Instant::now();
            while bus.turn() > 0 {}
            tc += t.elapsed().as_nanos();
        }
        println!("publish {} ns, handle {} ns", tp / 2_000_000, tc / 2_000_000);
    }
}
