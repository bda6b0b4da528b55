//! Templates: values `{{name}}`, and optional parts from `//@if name` to `//@end`.

/// The values of a template.
#[derive(Debug, Default)]
pub(super) struct Values {
    texts: Vec<(&'static str, String)>,
    parts: Vec<&'static str>,
}

impl Values {
    /// Sets the text of a place.
    pub(super) fn text(&mut self, name: &'static str, text: impl Into<String>) {
        self.texts.push((name, text.into()));
    }

    /// Keeps a part if `kept`.
    pub(super) fn part(&mut self, name: &'static str, kept: bool) {
        self.parts.extend(kept.then_some(name));
    }

    /// The template with everything in its place. Parts may lie inside parts; of empty lines in a row one is left.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut out = String::new();
        // Whether each of the parts that are open is kept.
        let mut open = Vec::new();
        for line in template.lines() {
            if let Some(name) = line.strip_prefix("//@if ") {
                open.push(self.parts.contains(&name));
            } else if line == "//@end" {
                open.pop();
            } else if open.iter().all(|&kept| kept) && !(line.is_empty() && out.ends_with("\n\n")) {
                self.fill_line(line, &mut out);
                out.push('\n');
            }
        }
        out
    }

    fn fill_line(&self, line: &str, out: &mut String) {
        let mut rest = line;
        while let Some((before, (name, after))) =
            rest.split_once("{{").and_then(|(before, behind)| Some((before, behind.split_once("}}")?)))
        {
            out.push_str(before);
            let text = self.texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str());
            // A text is never filled in turn: it may come out of a file.
            out.push_str(text.unwrap_or_default());
            rest = after;
        }
        out.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_parts_kept_or_left_out() {
        let mut values = Values::default();
        values.text("name", "{{other}}");
        values.text("other", "no");
        values.part("a", true);
        values.part("b", false);
        let template = "1 {{name}}!\n//@if a\n2\n//@if b\n3\n//@end\n4\n//@end\n//@if b\n//@if a\n5\n//@end\n//@end\n6\n";
        assert_eq!(values.fill(template), "1 {{other}}!\n2\n4\n6\n");
    }
}
