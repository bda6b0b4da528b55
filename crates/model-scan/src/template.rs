//! Chat templates, which are programs of Jinja.
//!
//! What templates of models use is listed: a survey of 152 of them needs 61 names. A program that runs a template without a sandbox gives it all
//! of Python through one attribute with an underscore, so what is on no list, and any attribute whose name the template computes, is suspicious.

mod kinds;
mod lexer;
mod names;
mod parser;

use self::kinds::Kinds;
use self::parser::Parser;
use crate::problem::Problem;

/// Bytes of a template that are judged.
pub(crate) const MAX: usize = 1 << 20;

/// Passes until it is known which variables hold texts that the template has built: one for each assignment that depends on a later one.
const MAX_PASSES: usize = 16;

/// What a template is: a note, or the first thing in it that templates of models do not need.
pub(crate) fn judge(text: &str) -> Problem {
    if text.len() > MAX {
        return Problem::Unopened { reason: "a chat template of more than 1 MiB" };
    }
    let unread = Problem::Unopened { reason: "a chat template that cannot be parsed" };
    let Some(tokens) = lexer::tokens(text) else { return unread };
    let mut kinds = Kinds::default();
    for _ in 0..MAX_PASSES {
        kinds.is_changed = false;
        let mut parser = Parser::new(&tokens, &mut kinds);
        let is_whole = parser.template().is_some();
        let problem = parser.problem;
        if let Some(problem) = problem.or_else(|| Some(unread.clone()).filter(|_| !is_whole)) {
            return problem;
        }
        if !kinds.is_changed {
            return Problem::ChatTemplate {};
        }
    }
    unread
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    #[test]
    fn templates_are_judged_as_a_whole_or_not_at_all() {
        let long = |len: usize| "x".repeat(len - 17) + "{{ x.__class__ }}";
        assert_eq!(judge(&long(MAX)), Problem::TemplateCode {});
        assert_eq!(judge(&long(MAX + 1)).code(), "sc-unopened");
    }

    #[test]
    fn templates_that_leave_the_sandbox_are_told_apart() {
        for (text, code) in [
            ("{% for m in messages %}{{ m['content'] | trim }}{% endfor %}", false),
            ("{{ '____' }} {{ hasattr(x) }}", false),
            ("{# ''.__class__ #}x.__class__{% raw %}{{ x.__class__ }}{% endraw %}", false),
            ("{{ ''.__class__.__base__ }}", true),
            ("{{ x | attr ('a') }}", true),
            ("{{ x['\\x5f\\x5fclass'] }}", true),
            ("{{ x['_\\x5Fclass'] }}", true),
            ("{{ x['_\\u005fclass'] }}", true),
            ("{{ x['_\\U0000005fclass'] }}", true),
            ("{{ x['_\\137class'] }}", true),
            ("{{ x['_\\N{LOW LINE}class'] }}", true),
            ("{{ '\\n{' }} {{ x__ }} {{ ab__ }}", false),
        ] {
            assert_eq!(judge(text) == Problem::TemplateCode {}, code, "{text}");
        }
    }

    /// `note`, `code`, `name` or `unread`.
    fn verdict(text: &str) -> String {
        match judge(text) {
            Problem::ChatTemplate {} => "note".into(),
            Problem::TemplateCode {} => "code".into(),
            Problem::TemplateName { name } => format!("name {name}"),
            _ => "unread".into(),
        }
    }

    #[test]
    fn names_are_those_of_the_lists() {
        for name in names::FILTERS {
            assert_eq!(verdict(&format!("{{{{ x|{name} }}}}")), "note", "{name}");
            assert_eq!(verdict(&format!("{{% filter {name} %}}x{{% endfilter %}}")), "note", "{name}");
        }
        for name in names::TESTS {
            assert_eq!(verdict(&format!("{{{{ x is {name} and y is not {name} }}}}")), "note", "{name}");
        }
        for name in names::FUNCTIONS {
            assert_eq!(verdict(&format!("{{{{ {name}(x) }}}}")), "note", "{name}");
            assert_eq!(
                verdict(&format!("{{{{ {name} is defined or {name} is not undefined }}}}")),
                "note",
                "{name}"
            );
            for use_of in [
                "{{ NAME }}",
                "{{ NAME.x }}",
                "{{ [NAME]|first }}",
                "{{ NAME['x'] }}",
                "{{ NAME is string }}",
            ] {
                assert_eq!(verdict(&use_of.replace("NAME", name)), "code", "{name} {use_of}");
            }
        }
        for name in names::METHODS {
            assert_eq!(verdict(&format!("{{{{ x.{name}(y) }}}}")), "note", "{name}");
        }
        for name in names::OBJECTS {
            for use_of in
                ["{{ NAME }}", "{{ NAME() }}", "{{ NAME.x }}", "{% set x = NAME %}", "{{ NAME is defined }}"]
            {
                assert_eq!(verdict(&use_of.replace("NAME", name)), "code", "{name} {use_of}");
            }
        }
        for (text, name) in [
            ("{{ x|format(y) }}", "format"),
            ("{{ x|striptags }}", "striptags"),
            ("{% filter xmlattr %}{% endfilter %}", "xmlattr"),
            ("{{ x is callable }}", "callable"),
            ("{{ x is not sameas y }}", "sameas"),
            ("{{ f(x) }}", "f"),
            ("{{ x.format(y) }}", "format"),
            ("{{ x.encode() }}", "encode"),
            ("{{ x['get'](y) }}", "a call of a value"),
            ("{{ x(y)(z) }}", "x"),
            ("{{ (x or y)(z) }}", "a call of a value"),
            ("{{ x|first()(y) }}", "a call of a value"),
            ("{{ loop(x) }}", "loop"),
            ("{% include 'x' %}", "include"),
            ("{% import 'x' as y %}", "import"),
            ("{% from 'x' import y %}", "from"),
            ("{% extends 'x' %}", "extends"),
            ("{% block x %}{% endblock %}", "block"),
            ("{% do x.append(y) %}", "do"),
            ("{% autoescape false %}", "autoescape"),
        ] {
            assert_eq!(verdict(text), format!("name {name}"), "{text}");
        }
    }

    #[test]
    fn attributes_are_those_of_data() {
        for name in names::INSIDES {
            assert_eq!(verdict(&format!("{{{{ x.{name} }}}}")), "code", "{name}");
            assert_eq!(verdict(&format!("{{{{ x['{name}'] }}}}")), "code", "{name}");
        }
        for (text, expected) in [
            ("{{ x._y }}", "code"),
            ("{{ x['_y'] }}", "code"),
            ("{{ x['_' '_class'] }}", "code"),
            ("{{ '__class' }}", "code"),
            ("{{ x.0.y[1]['z'][-1][1:2][::-1] }}", "note"),
            ("{% macro m() %}{% endmacro %}{{ m() }}", "note"),
            ("{% macro m() %}{% endmacro %}{{ m.name }}", "code"),
            ("{% macro m() %}{% endmacro %}{{ m is defined }}", "note"),
            ("{{ m() }}{% macro m() %}{% endmacro %}", "note"),
            ("{% set m = x %}{{ m() }}", "name m"),
            ("{{ x|map(attribute='y')|list }}", "note"),
            ("{{ x|map(attribute='y.z') }}", "note"),
            ("{{ x|map(attribute='y._z') }}", "code"),
            ("{{ x|map(attribute=y) }}", "code"),
            ("{{ x|map('upper') }}", "note"),
            ("{{ x|map('attr', 'y') }}", "code"),
            ("{{ x|map('map', 'attr', 'y') }}", "code"),
            ("{{ x|map('join', '', '_y') }}", "code"),
            ("{{ x|map(y) }}", "code"),
            ("{{ x|map(*y) }}", "code"),
            ("{{ x|map(**y) }}", "code"),
            ("{{ x|map() }}", "note"),
            ("{{ x|selectattr('role', 'equalto', 'user') }}", "note"),
            ("{{ x|selectattr('_role') }}", "code"),
            ("{{ x|selectattr(y) }}", "code"),
            ("{{ x|selectattr('y', 'callable') }}", "code"),
            ("{{ x|rejectattr('y', z) }}", "code"),
            ("{{ x|rejectattr('_y') }}", "code"),
            ("{{ x|reject('in', y) }}", "note"),
            ("{{ x|reject('callable') }}", "code"),
            ("{{ x|sort(attribute='y') }}", "note"),
            ("{{ x|sort(true, false, 'y') }}", "note"),
            ("{{ x|sort(true, false, '_y') }}", "code"),
            ("{{ x|sort(attribute='_y') }}", "code"),
            ("{{ x|unique(false, '_y') }}", "code"),
            ("{{ x|unique(false, 'y') }}", "note"),
            ("{{ x|join('_y') }}", "note"),
            ("{{ x|join(', ', '_y') }}", "code"),
            ("{{ x|join(', ', 'y') }}", "note"),
            ("{% filter map('attr', 'y') %}{% endfilter %}", "code"),
        ] {
            assert_eq!(verdict(text), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_not_texts_that_the_template_builds() {
        for (text, expected) in [
            ("{{ x[y] }}", "note"),
            ("{{ x[y.z] }}", "note"),
            ("{{ x[y - 1] }}", "note"),
            ("{{ x[y + 1] }}", "note"),
            ("{{ x[1 + y] }}", "note"),
            ("{{ x[loop.index0 % 2] }}", "code"),
            ("{{ x[(y|length) % 2] }}", "note"),
            ("{{ x[y|int * 2] }}", "note"),
            ("{{ x[-y] }}", "note"),
            ("{{ x[y // 2] }}", "note"),
            ("{{ x[y == z] }}{{ x[not y] }}{{ x[y in z] }}{{ x[y is string] }}", "note"),
            ("{{ x[y if z else 'a'] }}", "note"),
            ("{{ x[y or 'a'] }}{{ x[y and z] }}", "note"),
            ("{{ x[y|default('a')] }}{{ x[y|trim] }}{{ x[y.strip()] }}{{ x[y.get('a')] }}", "note"),
            ("{% for k in ['a', 'b'] %}{{ x[k] }}{% endfor %}", "note"),
            ("{% for k, v in x.items() %}{{ x[k] }}{% endfor %}", "note"),
            ("{% for k in range(3) %}{{ x[k] }}{% endfor %}", "note"),
            ("{% set k = 'a' %}{{ x[k] }}", "note"),
            ("{% set k = 0 %}{% set k = k + 1 %}{{ x[k] }}", "note"),
            ("{% set ns = namespace(k=0) %}{% set ns.k = ns.k + 1 %}{{ x[ns.k] }}", "note"),
            ("{% macro m(k) %}{{ x[k] }}{% endmacro %}{{ m('a') }}{{ m(k=y) }}", "note"),
            ("{{ x[y ~ z] }}", "code"),
            ("{{ x[y + z] }}", "code"),
            ("{{ x[y * 2] }}", "code"),
            ("{{ x['%c' % 95] }}", "code"),
            ("{{ x[y|lower] }}", "code"),
            ("{{ x[y|replace('a', 'b')] }}", "code"),
            ("{{ x[y|join] }}", "code"),
            ("{{ x[y.upper()] }}", "code"),
            ("{{ x['a_b'.strip('a')] }}", "code"),
            ("{{ x['a_b'|trim('a')] }}", "code"),
            ("{{ x['a_b'[1:]] }}", "code"),
            ("{{ x[y[1:]] }}", "note"),
            ("{{ x[bos_token] }}{{ x[extra_tokens[0]] }}", "code"),
            ("{{ x[strftime_now('_')] }}", "code"),
            ("{{ x[y or z ~ 'a'] }}{{ x }}", "code"),
            ("{{ x[y and z ~ 'a'] }}", "code"),
            ("{{ x[y ~ z if a else 'a'] }}", "code"),
            ("{{ x['a' if a else y ~ z] }}", "code"),
            ("{{ x[y|default(a ~ b)] }}", "code"),
            ("{{ x[y.get('a', a ~ b)] }}", "code"),
            ("{% set k = y ~ z %}{{ x[k] }}", "code"),
            ("{{ x[k] }}{% set k = y ~ z %}", "code"),
            ("{{ x[a] }}{% set a = b %}{% set b = c %}{% set c = d %}{% set d = y ~ z %}", "code"),
            ("{% set k, l = 'a', y ~ z %}{{ x[k] }}", "code"),
            ("{% set k %}_{% endset %}{{ x[k] }}", "code"),
            ("{% set ns.k = y ~ z %}{{ x[ns.k] }}", "code"),
            ("{% set ns = namespace(k=y ~ z) %}{{ x[ns.k] }}", "code"),
            ("{% set ns = namespace({'k': y ~ z}) %}{{ x[ns.k] }}", "code"),
            ("{% for k in ['a', y ~ z] %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in ('a', y ~ z) %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in {y ~ z: 1} %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in dict(a=y ~ z).items() %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in ['_a'] %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in ['ab']|map('replace', 'b', '_') %}{{ x[k] }}{% endfor %}", "code"),
            ("{% macro m(k) %}{{ x[k] }}{% endmacro %}{{ m(y ~ z) }}", "code"),
            ("{% macro m(a, k) %}{{ x[k] }}{% endmacro %}{{ m(1, k=y ~ z) }}", "code"),
            ("{% macro m(a, k=y ~ z) %}{{ x[k] }}{% endmacro %}{{ m(1) }}", "code"),
            ("{% macro m() %}{{ x[varargs[0]] }}{% endmacro %}", "code"),
            ("{% macro m() %}{{ x[kwargs['a']] }}{% endmacro %}", "code"),
            ("{% macro m() %}a{% endmacro %}{{ x[m()] }}", "code"),
            ("{% call(k) m() %}{{ x[k] }}{% endcall %}{% macro m() %}{% endmacro %}", "code"),
            ("{% set l = [] %}{{ l.append(y ~ z) }}{% for k in l %}{{ x[k] }}{% endfor %}", "code"),
            ("{{ y.append(y ~ z) }}{{ x['a'] }}", "note"),
            ("{{ x[y.z] }}{{ x[y.0] }}{{ y.append(z) }}", "note"),
            ("{{ x[y.z] }}{{ y.append(y ~ z) }}", "code"),
            ("{{ x[y.0] }}{{ y.append(y ~ z) }}", "code"),
            ("{{ x[y.items()] }}{{ y.append(y ~ z) }}", "code"),
            ("{{ x[y|first] }}{{ y.append(y ~ z) }}", "code"),
            ("{{ x[y|map(attribute='z')] }}{{ y.append(y ~ z) }}", "code"),
            ("{{ x[y|map('first')] }}", "code"),
            ("{% for k in [] + [y ~ z] %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in () + (y ~ z, 1) %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in (1, 2) + (y ~ z, 1) %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in [1] * 2 %}{{ x[k] }}{% endfor %}", "code"),
            ("{% for k in y %}{{ x[loop.previtem] }}{% endfor %}", "code"),
            ("{% for k in y %}{{ x[loop.nextitem] }}{{ loop.previtem.role }}{% endfor %}", "code"),
            ("{% for k in dict(__class__=1) %}{{ x[k] }}{% endfor %}", "code"),
            ("{% set range = x.format %}{{ range(y) }}", "code"),
            ("{% for dict in x %}{{ dict(y) }}{% endfor %}", "code"),
            ("{% macro m() %}{% endmacro %}{% set m = x.format %}{{ m(y) }}", "code"),
            ("{% macro m(m) %}{{ m(y) }}{% endmacro %}", "code"),
            ("{% set lipsum = x %}", "code"),
            ("{% set ns.range = x %}", "note"),
            ("{% set l = [] %}{% set o = l %}{{ o.append(y ~ z) }}{{ x[l[0]] }}{{ x[l.pop()] }}", "code"),
            ("{% set l = [] %}{{ l.append(y) }}{% for k in l %}{{ x[k] }}{% endfor %}", "note"),
            ("{% set l = y %}{{ l.append(y ~ z) }}{% for k in y %}{{ x[k] }}{% endfor %}", "code"),
            ("{{ x[y|int(y ~ z)] }}{{ x[y|int] }}", "code"),
            ("{{ x[y|int(default=y ~ z)] }}", "code"),
            ("{{ x[y|int] }}{{ x[y|int(1)] }}{{ x[y|int('a')] }}", "note"),
            ("{% set ns.k = y ~ z %}{{ x[ns['k']] }}", "code"),
            ("{% set ns.k = y ~ z %}{{ x[ns[a]] }}", "code"),
            ("{% set ns.k = y ~ z %}{{ x[ns['a']] }}{{ x[a[0]] }}{{ x[a] }}", "note"),
            ("{% set ns.k = y ~ z %}{{ x[[ns]|map(attribute='k')|first] }}", "code"),
            ("{% set ns.k = y ~ z %}{{ x[[ns]|map(attribute='k.real')|first] }}", "code"),
            ("{% set ns.k = y ~ z %}{{ x[[ns]|map(attribute='a')|first] }}", "note"),
            ("{% for k, v in {y ~ z: 1}.items() - {}.items() %}{{ x[k] }}{% endfor %}", "code"),
            ("{{ x[y - z] }}", "note"),
            ("{% set ns.get = y.append %}{{ ns.get('x') }}", "code"),
            ("{{ a.get('x') }}{% set ns = namespace(get=y.append) %}", "code"),
            ("{% set ns.get = y %}{{ ns.get }}", "note"),
            ("{{ x['\\\n_\\\n_init__'] }}", "code"),
            ("{{ x|map(\u{ff41}ttribute=y ~ z) }}", "name \u{ff41}ttribute"),
            ("{% set \u{ff49} = y ~ z %}{{ x[i] }}", "name \u{ff49}"),
        ] {
            assert_eq!(verdict(text), expected, "{text}");
        }
    }

    #[test]
    fn statements_are_read_as_jinja_reads_them() {
        for (text, expected) in [
            ("{% if a is defined and a is not none %}{% elif b %}{% else %}{% endif %}", "note"),
            ("{% for a in b if a.c recursive %}{% break %}{% continue %}{% else %}{% endfor %}", "note"),
            ("{% for a, (b, c) in d|dictsort %}{% endfor %}", "note"),
            ("{% set a = b, c %}{% set (a, b) = c %}{% set a.b = c %}{% set a | trim %}{% endset %}", "note"),
            ("{% macro m(a, b=1, c='x') -%}{% endmacro m %}", "note"),
            ("{% call m() %}{% endcall %}{% macro m() %}{{ caller() }}{% endmacro %}", "note"),
            ("{% generation %}{% endgeneration %}", "note"),
            (
                "{{ a, b }}{{ (a, b) }}{{ () }}{{ (a,) }}{{ [a, b,] }}{{ {'a': b, 'c': d,} }}{{ [] }}{{ {} }}",
                "note",
            ),
            (
                "{{ a if b }}{{ a if b else c if d else e }}{{ not a == b }}{{ a not in b }}{{ a < b <= c }}",
                "note",
            ),
            ("{{ a ** b }}{{ -a ** -b }}{{ +a }}{{ - 1 | abs }}", "name abs"),
            ("{{ a is divisibleby 3 }}", "name divisibleby"),
            ("{{ a is eq 3 }}{{ a is in [1] and b }}{{ a is ne('x') or b is in b.c }}", "note"),
            ("{{ true }}{{ false }}{{ none }}{{ True }}{{ False }}{{ None }}", "note"),
            ("{{ a|default('', true)|replace('b', 'c', 1) }}", "note"),
            ("{{ 'a' 'b' }}", "note"),
            ("{{ a b }}", "unread"),
            ("{{ a. }}", "unread"),
            ("{{ a[ }}", "unread"),
            ("{{ a| }}", "unread"),
            ("{{ a is }}", "unread"),
            ("{{ (a }}", "unread"),
            ("{{ }}", "unread"),
            ("{{ {'a'} }}", "unread"),
            ("{{ f(a b) }}", "unread"),
            ("{% for a b %}", "unread"),
            ("{% for a in b c %}", "unread"),
            ("{% set 1 = b %}", "unread"),
            ("{% macro %}", "unread"),
            ("{% %}", "unread"),
            ("{% if a b %}", "unread"),
            ("{% 1 %}", "unread"),
        ] {
            assert_eq!(verdict(text), expected, "{text}");
        }
        let nested = |depth: usize| format!("{{{{ {}a{} }}}}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!((verdict(&nested(47)).as_str(), verdict(&nested(48)).as_str()), ("note", "unread"));
        assert_eq!(verdict(&nested(40).repeat(9)), "note");
        for sign in ["not ", "- "] {
            let signs = |depth: usize| format!("{{{{ {}a }}}}", sign.repeat(depth));
            assert_eq!(
                (verdict(&signs(47)).as_str(), verdict(&signs(48)).as_str()),
                ("note", "unread"),
                "{sign}"
            );
        }
        let chain = |len: usize| -> String {
            let sets = |idx| format!("{{% set a{idx} = a{} %}}", idx + 1);
            (0..len).map(sets).collect::<String>() + &format!("{{% set a{len} = b ~ c %}}")
        };
        assert_eq!((verdict(&chain(14)).as_str(), verdict(&chain(15)).as_str()), ("note", "unread"));
    }
}
