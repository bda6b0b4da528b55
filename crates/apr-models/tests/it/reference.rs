//! The Statistical Reference Datasets of NIST, the United States' National Institute of Standards and Technology, with
//! their certified values (public domain).

use apr_models::{Matrix, Vector};

use crate::data::{fitted, matrix};

/// Asserts that found numbers agree with certified ones to `digits` significant digits.
#[track_caller]
fn assert_digits(found: impl IntoIterator<Item = f32>, certified: &[f64], digits: i32) {
    let found: Vec<f32> = found.into_iter().collect();
    assert_eq!(found.len(), certified.len());
    for (found, certified) in found.into_iter().zip(certified) {
        let error = (f64::from(found) / certified - 1.0).abs();
        assert!(error < 0.5 * 10.0_f64.powi(1 - digits), "found {found}, certified {certified}");
    }
}

/// Linear, higher level of difficulty: six strongly collinear features, among them the year.
#[test]
fn longley() {
    let rows: [[f32; 7]; 16] = [
        [60323.0, 83.0, 234289.0, 2356.0, 1590.0, 107608.0, 1947.0],
        [61122.0, 88.5, 259426.0, 2325.0, 1456.0, 108632.0, 1948.0],
        [60171.0, 88.2, 258054.0, 3682.0, 1616.0, 109773.0, 1949.0],
        [61187.0, 89.5, 284599.0, 3351.0, 1650.0, 110929.0, 1950.0],
        [63221.0, 96.2, 328975.0, 2099.0, 3099.0, 112075.0, 1951.0],
        [63639.0, 98.1, 346999.0, 1932.0, 3594.0, 113270.0, 1952.0],
        [64989.0, 99.0, 365385.0, 1870.0, 3547.0, 115094.0, 1953.0],
        [63761.0, 100.0, 363112.0, 3578.0, 3350.0, 116219.0, 1954.0],
        [66019.0, 101.2, 397469.0, 2904.0, 3048.0, 117388.0, 1955.0],
        [67857.0, 104.6, 419180.0, 2822.0, 2857.0, 118734.0, 1956.0],
        [68169.0, 108.4, 442769.0, 2936.0, 2798.0, 120445.0, 1957.0],
        [66513.0, 110.8, 444546.0, 4681.0, 2637.0, 121950.0, 1958.0],
        [68655.0, 112.6, 482704.0, 3813.0, 2552.0, 123366.0, 1959.0],
        [69564.0, 114.2, 502601.0, 3931.0, 2514.0, 125368.0, 1960.0],
        [69331.0, 115.7, 518173.0, 4806.0, 2572.0, 127852.0, 1961.0],
        [70551.0, 116.9, 554894.0, 4007.0, 2827.0, 130081.0, 1962.0],
    ];
    let x = matrix(&rows.map(|[_, features @ ..]| features));
    let y = rows.map(|[target, ..]| target);
    let model = fitted(&x, &y);
    // The deflator's decimals are rounded by f32 before we see them.
    assert_digits([model.coefficients()[0]], &[15.061_872_271_373_3], 5);
    assert_digits(
        model.coefficients().iter().skip(1),
        &[
            -0.035_819_179_292_591,
            -2.020_229_803_816_83,
            -1.033_226_867_173_59,
            -0.051_104_105_653_580_7,
            1_829.151_464_613_55,
        ],
        5,
    );
    assert_digits([model.intercept()], &[-3_482_258.634_595_82], 7);
    // Least squares in exact rational arithmetic on the rounded table.
    assert_digits(
        model.coefficients(),
        &[
            15.061_670_259_149_805,
            -0.035_819_124_970_380_34,
            -2.020_229_122_778_935,
            -1.033_226_683_415_540_4,
            -0.051_104_476_302_619_35,
            1_829.151_227_024_014_6,
        ],
        7,
    );
    assert_digits([model.score(&x, &Vector::from_vec(y.to_vec()))], &[0.995_479_004_577_296], 7);
}

/// Linear, lower level of difficulty: one feature.
#[test]
fn norris() {
    let pairs: [[f32; 2]; 36] = [
        [0.1, 0.2],
        [338.8, 337.4],
        [118.1, 118.2],
        [888.0, 884.6],
        [9.2, 10.1],
        [228.1, 226.5],
        [668.5, 666.3],
        [998.5, 996.3],
        [449.1, 448.6],
        [778.9, 777.0],
        [559.2, 558.2],
        [0.3, 0.4],
        [0.1, 0.6],
        [778.1, 775.5],
        [668.8, 666.9],
        [339.3, 338.0],
        [448.9, 447.5],
        [10.8, 11.6],
        [557.7, 556.0],
        [228.3, 228.1],
        [998.0, 995.8],
        [888.8, 887.6],
        [119.6, 120.2],
        [0.3, 0.3],
        [0.6, 0.3],
        [557.6, 556.8],
        [339.3, 339.1],
        [888.0, 887.2],
        [998.5, 999.0],
        [778.9, 779.0],
        [10.2, 11.1],
        [117.6, 118.3],
        [228.9, 229.2],
        [668.4, 669.1],
        [449.2, 448.9],
        [0.2, 0.5],
    ];
    let x = matrix(&pairs.map(|[_, feature]| [feature]));
    let y = pairs.map(|[target, _]| target);
    let model = fitted(&x, &y);
    assert_digits(model.coefficients(), &[1.002_116_818_020_45], 7);
    assert_digits([model.intercept()], &[-0.262_323_073_774_029], 4);
    assert_digits([model.score(&x, &Vector::from_vec(y.to_vec()))], &[0.999_993_745_883_712], 7);
}

/// Linear, higher level of difficulty: a polynomial of degree five with every coefficient 1, exact in f32.
#[test]
fn wampler_1() {
    let powers = (0..=20_u8).flat_map(|t| (1..=5).map(move |power| f32::from(t).powi(power)));
    let x = Matrix::from_vec(21, 5, powers.collect()).unwrap();
    let y: Vec<f32> = x.rows().map(|row| 1.0 + row.iter().sum::<f32>()).collect();
    let model = fitted(&x, &y);
    assert_digits(model.coefficients(), &[1.0; 5], 7);
    assert_digits([model.intercept()], &[1.0], 7);
    assert_eq!(model.predict(&x).as_slice(), y);
}
