//! Did you mean: the known name nearest to one that is not known.

/// Longer words are not compared: nobody mistypes them, and comparing is quadratic.
const WORD_MAX: usize = 64;

/// More candidates than this are not compared.
const CANDIDATES_MAX: usize = 10_000;

/// The candidate that differs from `word` least, if it is near enough to be meant.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > WORD_MAX {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let wanted = plain(word);
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len() <= WORD_MAX && *candidate != word)
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        // One letter is near to every other letter.
        .filter(|(distance, candidate)| *distance < candidate.len().max(word.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_suggested_only_when_near() {
        let names = ["capacity", "permits", "on-full", "eq", "ge"];
        assert_eq!(nearest("capcity", names), Some("capacity"));
        assert_eq!(nearest("Permits", names), Some("permits"));
        assert_eq!(nearest("on_full", names), Some("on-full"));
        assert_eq!(nearest("gte", names), Some("ge"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("a", ["b"]), None);
        assert_eq!(nearest(&"x".repeat(100), names), None);
    }
}
