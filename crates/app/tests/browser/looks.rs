//! Every page, in both themes and several widths: what holds for any page holds for each.

use std::path::PathBuf;

use super::checks;
use super::chromium::{Scripts, is_left_out};
use super::page::{Page, Theme};
use super::sample::{self, Place};
use super::site::Site;

/// The widths of a desk, of a phone, and of the narrowest phone.
const WIDTHS: [u32; 3] = [1280, 400, NARROWEST];
/// It is looked at, and no picture is taken.
const NARROWEST: u32 = 360;
/// Where pictures are left, if anybody wants them.
const PICTURES: &str = "OPEN_CONDUIT_TEST_SCREENSHOTS";

#[test]
fn every_page_in_light() {
    looks_at_every_page(Theme::Light);
}

#[test]
fn every_page_in_dark() {
    looks_at_every_page(Theme::Dark);
}

fn looks_at_every_page(theme: Theme) {
    if is_left_out() {
        return;
    }
    let pictures = std::env::var_os(PICTURES).map(PathBuf::from);
    visit_every_page(|page, place| {
        let mut problems = Vec::new();
        for width in WIDTHS {
            page.look(width, theme);
            page.reload();
            let found = checks::problems(page);
            problems.extend(found.into_iter().map(|problem| format!("at {width} px: {problem}")));
            if let Some(folder) = pictures.as_ref().filter(|_| place.has_picture && width != NARROWEST) {
                page.screenshot(&folder.join(format!("{}-{width}-{}.png", place.name, theme.name())));
            }
        }
        problems
    });
}

#[test]
fn every_page_with_the_tab_key() {
    if is_left_out() {
        return;
    }
    visit_every_page(|page, _place| checks::tab_problems(page));
}

/// Shows every page, and fails with all that was found wrong.
fn visit_every_page(mut problems_of: impl FnMut(&Page, &Place) -> Vec<String>) {
    let mut site = Site::open(sample::home(), Scripts::On);
    let places = sample::fill(&site);
    site.page.expect_in_console("/runs/run_none - Failed to load resource");
    let mut problems = Vec::new();
    for place in &places {
        site.goto(&place.path);
        let found = problems_of(&site.page, place);
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", place.name)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
