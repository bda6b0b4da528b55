//! Metadata as the format's first implementation wrote them, and what they say.

/// The bytes, and the values as JSON.
pub(crate) struct PeerMetadata {
    pub(crate) bytes: &'static [u8],
    pub(crate) json: &'static str,
}

/// Every type of value; from aprender 0.15.0.
pub(crate) const EVERY_VALUE: PeerMetadata = PeerMetadata {
    bytes:
        b"\x88\xaacreated_at\xaa1795241428\xb0aprender_version\xa60.15.0\xaamodel_name\xb5house-price-pred\
        ictor\xabdescription\xd9!Trained on Boston Housing dataset\xa8training\x83\xa7samples\xcd\x01\
        \xfa\xabduration_ms*\xa6source\xaaboston.csv\xafhyperparameters\x8a\xa3neg\xf9\xa6epochsd\xa6sol\
        ver\xa3ols\xa7u64_max\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xadlearning_rate\xcb?\x84z\xe1G\xae\
        \x14{\xa4list\x95\x01\xcb@\x04\x00\x00\x00\x00\x00\x00\xa1x\xc0\x91\xc2\xa3obj\x81\xa1a\x81\xa1b\
        \x01\xa4none\xc0\xa7neg_big\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xadfit_intercept\xc3\xa7metrics\
        \x81\xa8r2_score\xcb?\xeeffffff\xa6custom\x81\xb1inference_pub_key\xd9@00ff00ff00ff00ff00ff00ff0\
        0ff00ff00ff00ff00ff00ff00ff00ff00ff00ff",
    json: r#"{
        "aprender_version": "0.15.0",
        "created_at": "1795241428",
        "custom": {
            "inference_pub_key": "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"
        },
        "description": "Trained on Boston Housing dataset",
        "hyperparameters": {
            "epochs": 100,
            "fit_intercept": true,
            "learning_rate": 0.01,
            "list": [1, 2.5, "x", null, [false]],
            "neg": -7,
            "neg_big": -9223372036854775808,
            "none": null,
            "obj": {"a": {"b": 1}},
            "solver": "ols",
            "u64_max": 18446744073709551615
        },
        "metrics": {"r2_score": 0.95},
        "model_name": "house-price-predictor",
        "training": {"duration_ms": 42, "samples": 506, "source": "boston.csv"}
    }"#,
};

/// Distilled from one teacher; from aprender 0.15.0.
pub(crate) const DISTILLED: PeerMetadata = PeerMetadata {
    bytes:
        b"\x85\xaacreated_at\xaa1795241433\xb0aprender_version\xa60.15.0\xaamodel_name\xa7student\xacdisti\
        llation\xb2sha256:teacherhash\xb1distillation_info\x83\xa6method\xa8Standard\xa7teacher\x83\xa4h\
        ash\xd9@9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\xaamodel_type\xb0Neural\
        Sequential\xabparam_count\xcf\x00\x00\x00\x01\xa1;\x86\x00\xa6params\x84\xabtemperature\xca@@\
        \x00\x00\xa5alpha\xca?333\xa6epochs\x0a\xaafinal_loss\xca>\xd7\x0a=",
    json: r#"{
        "aprender_version": "0.15.0",
        "created_at": "1795241433",
        "distillation": "sha256:teacherhash",
        "distillation_info": {
            "method": "Standard",
            "params": {
                "alpha": 0.699999988079071,
                "epochs": 10,
                "final_loss": 0.41999998688697815,
                "temperature": 3.0
            },
            "teacher": {
                "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "model_type": "NeuralSequential",
                "param_count": 7000000000
            }
        },
        "model_name": "student"
    }"#,
};

/// Distilled from an ensemble; from aprender 0.15.0.
pub(crate) const DISTILLED_FROM_TWO: PeerMetadata = PeerMetadata {
    bytes:
        b"\x84\xaacreated_at\xaa1795241433\xb0aprender_version\xa60.15.0\xaamodel_name\xa7student\xb1disti\
        llation_info\x83\xa6method\xa8Ensemble\xa7teacher\x85\xa4hash\xd9@9f86d081884c7d659a2feaa0c55ad0\
        15a3bf4f1b2b0b822cd15d6c15b0f00a08\xa9signature\xd9\x80c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c\
        0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0\xaamodel\
        _type\xb0NeuralSequential\xabparam_count\xcf\x00\x00\x00\x01\xa1;\x86\x00\xb1ensemble_teachers\
        \x92\x84\xa4hash\xd9@9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\xa9signatu\
        re\xd9\x80c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0\
        c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0\xaamodel_type\xb0NeuralSequential\xabparam_count\xcf\
        \x00\x00\x00\x01\xa1;\x86\x00\x83\xa4hash\xa8sha256:2\xaamodel_type\xa6Custom\xabparam_count\x01\
        \xa6params\x84\xabtemperature\xca@@\x00\x00\xa5alpha\xca?333\xa6epochs\x0a\xaafinal_loss\xca>\
        \xd7\x0a=",
    json: r#"{
        "aprender_version": "0.15.0",
        "created_at": "1795241433",
        "distillation_info": {
            "method": "Ensemble",
            "params": {
                "alpha": 0.699999988079071,
                "epochs": 10,
                "final_loss": 0.41999998688697815,
                "temperature": 3.0
            },
            "teacher": {
                "ensemble_teachers": [
                    {
                        "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                        "model_type": "NeuralSequential",
                        "param_count": 7000000000,
                        "signature": "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"
                    },
                    {"hash": "sha256:2", "model_type": "Custom", "param_count": 1}
                ],
                "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "model_type": "NeuralSequential",
                "param_count": 7000000000,
                "signature": "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"
            }
        },
        "model_name": "student"
    }"#,
};

/// With a license; from aprender 0.15.0.
pub(crate) const LICENSED: PeerMetadata = PeerMetadata {
    bytes:
        b"\x83\xaacreated_at\xaa1795241433\xb0aprender_version\xa60.15.0\xa7license\x86\xa4uuid\xd9$550e84\
        00-e29b-41d4-a716-446655440000\xa4hash\xd9@deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadb\
        eefdeadbeef\xa6expiry\xb42027-12-31T23:59:59Z\xa5seats\x19\xa8licensee\xa9Acme GmbH\xa4tier\xaaE\
        nterprise",
    json: r#"{
        "aprender_version": "0.15.0",
        "created_at": "1795241433",
        "license": {
            "expiry": "2027-12-31T23:59:59Z",
            "hash": "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
            "licensee": "Acme GmbH",
            "seats": 25,
            "tier": "Enterprise",
            "uuid": "550e8400-e29b-41d4-a716-446655440000"
        }
    }"#,
};

/// With a model card; from aprender-core 0.72.3.
pub(crate) const CARD: PeerMetadata = PeerMetadata {
    bytes:
        b"\x83\xaacreated_at\xaa1795241876\xb0aprender_version\xa60.72.3\xaamodel_card\x8f\xa8model_id\xb1\
        house-prices-2025\xa4name\xb1house-prices-2025\xa7version\xa51.2.3\xa6author\xa9user@host\xaacre\
        ated_at\xb42026-11-21T06:17:56Z\xb1framework_version\xafaprender 0.72.3\xabdescription\xa8one li\
        ne\xa7license\xa3MIT\xadtraining_data\x83\xa4name\xa6boston\xa7samples\xcd\x01\xfa\xa4hash\xd9@a\
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xafhyperparameters\x81\xa2lr\xcb\
        ?\xe0\x00\x00\x00\x00\x00\x00\xa7metrics\x81\xa2r2\xcb?\xec\xcc\xcc\xcc\xcc\xcc\xcd\xacarchitect\
        ure\xb0LinearRegression\xabparam_count\x04\xaftarget_hardware\x91\xa3cpu\xa9extra_key\x81\xa6nes\
        ted\x92\x01\x02",
    json: r#"{
        "aprender_version": "0.72.3",
        "created_at": "1795241876",
        "model_card": {
            "architecture": "LinearRegression",
            "author": "user@host",
            "created_at": "2026-11-21T06:17:56Z",
            "description": "one line",
            "extra_key": {"nested": [1, 2]},
            "framework_version": "aprender 0.72.3",
            "hyperparameters": {"lr": 0.5},
            "license": "MIT",
            "metrics": {"r2": 0.9},
            "model_id": "house-prices-2025",
            "name": "house-prices-2025",
            "param_count": 4,
            "target_hardware": ["cpu"],
            "training_data": {
                "hash": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "name": "boston",
                "samples": 506
            },
            "version": "1.2.3"
        }
    }"#,
};

/// Name and description; from aprender 0.10.0.
pub(crate) const NAMED: PeerMetadata = PeerMetadata {
    bytes:
        b"\x84\xaacreated_at\xaa1795241525\xb0aprender_version\xa60.10.0\xaamodel_name\xb5house-price-pred\
        ictor\xabdescription\xd9!Trained on Boston Housing dataset",
    json: r#"{
        "aprender_version": "0.10.0",
        "created_at": "1795241525",
        "description": "Trained on Boston Housing dataset",
        "model_name": "house-price-predictor"
    }"#,
};

pub(crate) const ALL: [PeerMetadata; 6] = [EVERY_VALUE, DISTILLED, DISTILLED_FROM_TWO, LICENSED, CARD, NAMED];
