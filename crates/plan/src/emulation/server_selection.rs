//! Conversations at one address and port, told apart by what their clients say first.

use wirestorm_model::program::Step;

use super::types::FirstBytes;
use super::types::Template;

/// Conversations at a port, at most: the bytes of each are looked at for those of all others, here
/// and when a client comes.
const COUNT_MAX: usize = 256;

/// Bytes that may tell, from the beginning on.
const PLACES: usize = 256;

/// What each of these begins with that no other one does; `None` where that cannot be had.
pub(super) fn tell_apart(begins: &[&[u8]]) -> Option<Vec<FirstBytes>> {
    if begins.len() > COUNT_MAX {
        return None;
    }
    begins.iter().enumerate().map(|(own, text)| particular(begins, own, text)).collect()
}

/// The bytes by which one of these differs from all others.
fn particular(begins: &[&[u8]], own: usize, text: &[u8]) -> Option<FirstBytes> {
    // Where the other one has said less by then, nobody could know that it says no more.
    let differs = |at: usize, other: &[u8]| other.get(at).is_some_and(|byte| *byte != text[at]);
    let mut others: Vec<_> = begins.to_vec();
    others.swap_remove(own);
    let mut bytes = Vec::new();
    while !others.is_empty() {
        let told = |at: &usize| others.iter().filter(|other| differs(*at, other)).count();
        let at = (0..text.len().min(PLACES)).rev().max_by_key(told)?;
        if told(&at) == 0 || bytes.len() == FirstBytes::COUNT_MAX {
            return None;
        }
        others.retain(|other| !differs(at, other));
        bytes.push((at as u8, 255, text[at]));
    }
    Some(FirstBytes(bytes))
}

/// What the client says before the server does, up to where it pauses; `None` where that cannot be
/// seen.
pub(super) fn beginning<'a>(client: &'a [Step], template: &Template) -> Option<&'a [u8]> {
    let is_quiet = |step: &&Step| {
        matches!(
            step,
            Step::Blocking(_)
                | Step::TrafficClass(_)
                | Step::Delay { .. }
                | Step::DelayAbout { .. }
                | Step::Idle { .. }
        )
    };
    match client.iter().find(|step| !is_quiet(step)) {
        Some(Step::Send { text, .. } | Step::SendDatagram { text, .. }) => {
            Some(text).filter(|_| template.tls.is_none()).map(Vec::as_slice)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(begins: &[&str]) -> Option<Vec<Vec<(u8, u8, u8)>>> {
        let begins: Vec<_> = begins.iter().map(|it| it.as_bytes()).collect();
        Some(tell_apart(&begins)?.into_iter().map(|it| it.0).collect())
    }

    #[test]
    fn as_few_bytes_as_will_do_tell() {
        let expected =
            vec![vec![(5, 255, b'a')], vec![(0, 255, b'G'), (5, 255, b'b')], vec![(0, 255, b'P')]];
        assert_eq!(told(&["GET /a ", "GET /b ", "PUT /b "]), Some(expected));
    }

    #[test]
    fn what_is_the_beginning_of_another_one_or_the_same_is_not_told() {
        assert_eq!(told(&["GET /", "GET /a"]), None);
        assert_eq!(told(&["GET /", "PUT /", "GET /"]), None);
        assert_eq!(told(&["", "a"]), None);
        let late = ["x".repeat(256) + "a", "x".repeat(256) + "b"];
        assert_eq!(told(&[&late[0], &late[1]]), None);
        // More bytes than are looked at: it differs from each of the others in one.
        let others: Vec<_> = (0..9).map(|at| format!("{:09}", 10_u64.pow(at))).collect();
        let zeros = "0".repeat(9);
        let all: Vec<_> = others.iter().map(String::as_str).chain([zeros.as_str()]).collect();
        assert_eq!(told(&all), None);
        assert!(told(&all[1..]).is_some());
        let many: Vec<_> = (0..257).map(|number| format!("{number:03}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(told(&many), None);
        assert!(told(&many[1..]).is_some());
    }
}
