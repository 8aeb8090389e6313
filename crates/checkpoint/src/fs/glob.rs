//! Matching of names against shell patterns.

/// Whether a name matches a pattern of `*`, `?`, `[abc]`, `[a-z]`, `[!x]` and `\` escapes.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    matches_from(&pattern, &name)
}

/// Whether a text has any of the characters with a meaning in patterns.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// Greedy match that falls back to the last `*` only: linear memory, at worst quadratic time.
fn matches_from(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p + 1, n));
            p += 1;
            continue;
        }
        if let (Some(rest), Some(&c)) = (pattern.get(p..), name.get(n))
            && let Some(used) = match_one(rest, c)
        {
            p += used;
            n += 1;
            continue;
        }
        // Let the last star swallow one more character.
        let Some((after_star, from)) = star else {
            return false;
        };
        star = Some((after_star, from + 1));
        p = after_star;
        n = from + 1;
    }
    pattern
        .get(p..)
        .unwrap_or_default()
        .iter()
        .all(|&c| c == '*')
}

/// Matches one character; gives the length of the pattern element used.
fn match_one(pattern: &[char], c: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == c).then_some(2),
        ['[', class @ ..] => match_class(class, c),
        [plain, ..] => (*plain == c).then_some(1),
        [] => None,
    }
}

/// Matches a class whose `[` is already taken; an unclosed one is a plain `[`.
fn match_class(class: &[char], c: char) -> Option<usize> {
    let negated = matches!(class.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A `]` directly after the opening is a member.
    let Some(end) = class
        .iter()
        .skip(start + 1)
        .position(|&m| m == ']')
        .map(|at| at + start + 1)
    else {
        return (c == '[').then_some(1);
    };
    let mut members = class.get(start..end).unwrap_or_default();
    let mut found = false;
    while let Some((&first, rest)) = members.split_first() {
        if let ['-', last, tail @ ..] = rest {
            found |= (first..=*last).contains(&c);
            members = tail;
        } else {
            found |= first == c;
            members = rest;
        }
    }
    (found != negated).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let yes = [
            ("*", ""),
            ("a*c", "abbc"),
            ("*.data-?????-of-*", "m.data-00000-of-00001"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]]", "]"),
            ("\\*", "*"),
            ("[", "["),
            ("**a", "xa"),
        ];
        for (pattern, name) in yes {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        let no = [
            ("a", "b"),
            ("a*c", "abb"),
            ("?", ""),
            ("[a-c]", "d"),
            ("\\*", "x"),
            ("", "a"),
            ("[!a]", "a"),
        ];
        for (pattern, name) in no {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
