//! Medians, spreads, and the interval of a paired ratio.

/// What a table row shows.
pub struct Summary {
    /// Median.
    pub median: f64,
    /// Fastest run.
    pub min: f64,
    /// Slowest run.
    pub max: f64,
    /// Median of the paired ratios to the base.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Summary {
    /// Summarises `own` against the runs of the base that stood beside them.
    pub fn of(own: &[f64], base: &[f64]) -> Self {
        let ratios: Vec<f64> = own.iter().zip(base).map(|(own, base)| own / base).collect();
        let mut medians: Vec<f64> = Vec::new();
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..2000 {
            let sample: Vec<f64> = (0..ratios.len())
                .map(|_| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    ratios[(random % ratios.len() as u64) as usize]
                })
                .collect();
            medians.push(median(&sample));
        }
        medians.sort_by(f64::total_cmp);
        let at = |share: f64| medians[((medians.len() - 1) as f64 * share) as usize];
        Self {
            median: median(own),
            min: own.iter().copied().fold(f64::INFINITY, f64::min),
            max: own.iter().copied().fold(0.0, f64::max),
            ratio: median(&ratios),
            low: at(0.025),
            high: at(0.975),
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}
