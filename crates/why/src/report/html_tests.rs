//! The page: foreign text stays text, and nothing else is needed.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::evidence::{Evidence, Phase};
use crate::fixtures::{clean_no_root, slow};

fn page_of(evidence: &Evidence) -> String {
    html(&Diagnosis::of(evidence), None)
}

fn data_of(page: &str) -> &str {
    let (_, rest) = page
        .split_once(r#"<script type="application/json" id="data">"#)
        .unwrap();
    rest.split_once("</script>").unwrap().0
}

/// Foreign text wherever there may be some.
fn foreign(text: &str) -> Evidence {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 300.0);
    evidence.host = text.to_owned();
    evidence.address = Some(text.to_owned());
    evidence.identification = Some(format!("SSH-2.0-{text}"));
    evidence.tier_notes = vec![text.to_owned()];
    evidence.logins[0].failure = Some(text.to_owned());
    for span in evidence
        .logins
        .iter_mut()
        .flat_map(|login| &mut login.spans)
    {
        span.detail = text.to_owned();
    }
    evidence
        .facts
        .insert("host.pam.motd", format!("pam_motd {text}"));
    evidence.facts.insert("host.motd_scripts.slowest", text);
    evidence
}

#[test]
fn the_page_loads_nothing() {
    let page = page_of(&clean_no_root(0.05));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<script").count(), 2);
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_script_makes_no_markup_of_text() {
    for markup in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        for script in [
            include_str!("shared.js"),
            include_str!("page.js"),
            include_str!("../fleet/page.js"),
        ] {
            assert!(!script.contains(markup), "{markup}");
        }
    }
}

#[test]
fn the_data_are_those_of_the_report() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 300.0);
    let diagnosis = Diagnosis::of(&evidence);
    let page = html(&diagnosis, None);
    let data: Value = serde_json::from_str(data_of(&page)).unwrap();
    assert_eq!(data, json(&diagnosis));
}

#[test]
fn a_login_that_was_followed_stands_beside_them_as_data_and_as_text() {
    let diagnosis = Diagnosis::of(&clean_no_root(0.05));
    let followed = Followed {
        data: serde_json::json!({"wall_us": 5, "by": "</script>"}),
        text: "Trace <by tracefs>\n".to_owned(),
    };
    let page = html(&diagnosis, Some(&followed));
    let data: Value = serde_json::from_str(data_of(&page)).unwrap();
    assert_eq!(data["trace"], followed.data);
    assert!(page.contains("Trace &lt;by tracefs&gt;"));
    assert_eq!(page.matches("</script").count(), 2);
}

#[test]
fn foreign_text_ends_no_element() {
    let attack = r#"</script><script>alert(1)</script><!-- "'&"#;
    let page = page_of(&foreign(attack));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<!--") && !page.contains("alert(1)</"));
    assert!(page.contains("<title>Why is the login to &lt;/script&gt;"));
}

proptest! {
    #[test]
    fn any_foreign_text_is_read_back_from_the_data(text: String) {
        let page = page_of(&foreign(&text));
        prop_assert_eq!(page.matches("<script").count(), 2);
        let data: Value = serde_json::from_str(data_of(&page)).unwrap();
        prop_assert_eq!(data["host"].as_str(), Some(text.as_str()));
    }
}
