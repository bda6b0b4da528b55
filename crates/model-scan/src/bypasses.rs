//! Where other scanners were bypassed with what was found.

/// By module, or module and name: reports of scanners that missed it.
const NAMES: &[(&str, &str)] = &[
    ("asyncio", "GHSA-f7qq-56ww-84cr"),
    ("pkgutil", "GHSA-vvpj-8cmc-gx39"),
    ("torch.utils.collect_env", "GHSA-f745-w6jp-hpxx"),
    ("torch.utils._config_module", "GHSA-vv6j-3g6g-2pvj"),
    ("torch.jit.unsupported_tensor_ops", "GHSA-vr7h-p6mm-wpmh"),
    ("torch._dynamo", "GHSA-86cj-95qr-2p4f"),
    ("torch.fx.experimental.symbolic_shapes", "GHSA-f4x7-rfwp-v3xw"),
    ("torch.utils.bottleneck", "GHSA-4r9r-ch6f-vxmx"),
    ("torch.utils.data.datapipes.utils.decoder", "GHSA-h3qp-7fh3-f8h4"),
    ("ensurepip", "GHSA-xp4f-hrf8-rxw7"),
    ("timeit", "GHSA-v7x6-rv5q-mhwc"),
    ("ctypes", "CVE-2026-22608"),
    ("marshal", "GHSA-565g-hwwr-4pp3"),
    ("types", "GHSA-565g-hwwr-4pp3"),
    ("pty", "GHSA-r7v6-mfhq-g3m2"),
    ("_posixsubprocess", "GHSA-m6fh-58r7-x697"),
    ("site", "GHSA-m6fh-58r7-x697"),
    ("atexit", "GHSA-m6fh-58r7-x697"),
    ("pickle", "GHSA-84r2-jw7c-4r5q"),
    ("pydoc", "fickling PR 186"),
    ("functools", "picklescan PR 65"),
    ("operator", "picklescan PR 65"),
    ("importlib", "picklescan PR 54"),
];

/// By code.
const CODES: &[(&str, &str)] = &[
    ("sc-attribute-path", "modelscan 338"),
    ("sc-computed-name", "picklescan 22"),
    ("sc-state-of-name", "modelscan 330"),
    ("sc-malformed", "GHSA-9gvj-pp9x-gcfr"),
    ("sc-side-pickle", "GHSA-jgw4-cr84-mqxg"),
    ("sc-nested", "GHSA-84r2-jw7c-4r5q"),
    ("sc-unexpected-state", "GHSA-mhc9-48gj-9gp3"),
    ("sc-keras-layer", "CVE-2024-3660"),
    ("sc-keras-module", "CVE-2025-1550"),
    ("sc-keras-code", "CVE-2025-1550"),
    ("sc-template-code", "CVE-2024-34359"),
    ("zc-checksum", "GHSA-mjqp-26hc-grxg"),
    ("zc-encrypted", "GHSA-w8jq-xcqf-f792"),
    ("zc-local-name", "GHSA-7q5r-7gvp-wc82"),
];

/// The report of a finding with this code and name.
pub(crate) fn report(code: &str, name: Option<(&str, &str)>) -> Option<&'static str> {
    let by_name = name.and_then(|(module, _)| {
        let covers = |known: &str| {
            module.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        NAMES.iter().find(|(known, _)| covers(known))
    });
    by_name.or_else(|| CODES.iter().find(|(known, _)| *known == code)).map(|(_, report)| *report)
}
