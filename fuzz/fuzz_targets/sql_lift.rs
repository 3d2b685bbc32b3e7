//! Any text around a planted secret, which is a literal wherever it ends up inside quotes: the template holds no
//! byte run of it unless the text puts it where PostgreSQL reads no literal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_sql::{Lifter, TEMPLATE_BYTES_MAX, sqlcommenter};

const SECRET: &[u8] = b"QZsecretQZ";

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Reads everything that a text gives.
fn lift(lifter: &mut Lifter, text: &[u8], standard_strings: bool) -> Vec<u8> {
    let mut scratch = Vec::new();
    let lifted = lifter.lift(text, standard_strings);
    for literal in lifted.literals() {
        literal.value(&mut scratch);
    }
    let tags = sqlcommenter::Tags::find(lifted.comments());
    for tag in [tags.route, tags.controller, tags.action, tags.traceparent].into_iter().flatten() {
        tag.decode(&mut scratch);
    }
    let _ = (lifted.kind(), lifted.facts().parts().len(), lifted.table(), lifted.name());
    let template = lifted.template().to_vec();
    assert!(template.len() <= TEMPLATE_BYTES_MAX);
    template
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, text)) = data.split_first() else { return };
    let standard_strings = mode & 1 != 0;
    let mut lifter = Lifter::new();
    let template = lift(&mut lifter, text, standard_strings);
    assert_eq!(lift(&mut lifter, text, standard_strings), template, "a used lifter is as good as a new one");
    if template.len() < TEMPLATE_BYTES_MAX {
        lift(&mut lifter, &template, standard_strings);
    }
    // A literal of the secret behind a text that leaves no quote, comment or word open.
    let closed = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b" ,()=<>.;*_\n".contains(byte));
    if closed {
        let forms: [(&[u8], &[u8]); 5] =
            [(b" '", b"'"), (b" E'\\'", b"'"), (b" $q$", b"$q$"), (b" '", b""), (b" U&'", b"'")];
        for (open, close) in forms {
            let planted = [text, open, SECRET, close].concat();
            let template = lift(&mut lifter, &planted, true);
            assert!(
                !contains(&template, SECRET) || contains(text, SECRET),
                "{}",
                String::from_utf8_lossy(&template)
            );
        }
    }
});
