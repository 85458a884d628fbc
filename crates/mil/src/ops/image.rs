//! Ops that resample images.

use super::{
    ALL, BOOL, Cost, Domain, FLOATS, FROM_16, FROM_17, GATHERABLE, I32, Lit, NUMBERS, Need, ONLY_15, ONLY_16, OpDef, STRING, constant, op,
    optional, tensor,
};
use crate::ir::DType;

pub(super) const AFFINE: OpDef = op(
    "affine",
    "`x` resampled under an affine transform.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("transform_matrix", Domain::T(FLOATS)),
        constant("output_height", I32, Need::Required),
        constant("output_width", I32, Need::Required),
        constant("sampling_mode", STRING, Need::Required),
        constant("padding_mode", STRING, Need::Required),
        constant("padding_value", Domain::T(FLOATS), Need::Required),
        constant("coordinates_mode", STRING, Need::Required),
        constant("align_corners", BOOL, Need::Required),
    ],
    None,
    Cost::moves,
);
pub(super) const CROP: OpDef = op(
    "crop",
    "`x` without borders of its last two axes.",
    ALL,
    &[tensor("x", Domain::T(FLOATS)), constant("crop_height", I32, Need::Required), constant("crop_width", I32, Need::Required)],
    None,
    Cost::moves,
);
pub(super) const CROP_RESIZE_15: OpDef = op(
    "crop_resize",
    "Boxes cut out of `x` and resized.",
    ONLY_15,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("roi", Domain::T(FLOATS)),
        constant("target_height", I32, Need::Default(Lit::Int(1))),
        constant("target_width", I32, Need::Default(Lit::Int(1))),
        constant("normalized_coordinates", BOOL, Need::Default(Lit::False)),
        constant("spatial_scale", Domain::Free(&[DType::F32]), Need::Optional),
        constant("box_coordinate_mode", STRING, Need::Default(Lit::Text("CORNERS_HEIGHT_FIRST"))),
        constant("sampling_mode", STRING, Need::Default(Lit::Text("DEFAULT"))),
    ],
    None,
    Cost::moves,
);
pub(super) const CROP_RESIZE_16: OpDef = op(
    "crop_resize",
    "Boxes cut out of `x` and resized.",
    ONLY_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("roi", Domain::T(FLOATS)),
        constant("target_height", I32, Need::Default(Lit::Int(1))),
        constant("target_width", I32, Need::Default(Lit::Int(1))),
        constant("normalized_coordinates", BOOL, Need::Default(Lit::False)),
        constant("spatial_scale", Domain::Free(&[DType::F32]), Need::Optional),
        constant("box_coordinate_mode", STRING, Need::Default(Lit::Text("CORNERS_HEIGHT_FIRST"))),
        constant("sampling_mode", STRING, Need::Default(Lit::Text("DEFAULT"))),
        constant("pad_value", Domain::T(FLOATS), Need::Optional),
    ],
    None,
    Cost::moves,
);
pub(super) const CROP_RESIZE: OpDef = op(
    "crop_resize",
    "Boxes cut out of `x` and resized.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("boxes", Domain::Free(&[DType::F16, DType::F32, DType::U16])),
        optional("box_indices", Domain::Free(&[DType::I32, DType::U16])),
        constant("target_height", I32, Need::Default(Lit::Int(1))),
        constant("target_width", I32, Need::Default(Lit::Int(1))),
        constant("normalized_coordinates", BOOL, Need::Default(Lit::False)),
        constant("spatial_scale", Domain::Free(&[DType::F32]), Need::Optional),
        constant("box_coordinate_mode", STRING, Need::Default(Lit::Text("CORNERS_HEIGHT_FIRST"))),
        constant("sampling_mode", STRING, Need::Default(Lit::Text("DEFAULT"))),
        constant("pad_value", Domain::T(FLOATS), Need::Optional),
    ],
    None,
    Cost::moves,
);
pub(super) const RESAMPLE_15: OpDef = op(
    "resample",
    "`x` sampled at `coordinates`.",
    ONLY_15,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("coordinates", Domain::Free(&[DType::F32, DType::I32])),
        constant("sampling_mode", STRING, Need::Required),
        constant("padding_mode", STRING, Need::Required),
        constant("padding_value", Domain::T(FLOATS), Need::Required),
        constant("coordinates_mode", STRING, Need::Required),
        constant("align_corners", BOOL, Need::Required),
    ],
    None,
    Cost::moves,
);
pub(super) const RESAMPLE_16: OpDef = op(
    "resample",
    "`x` sampled at `coordinates`.",
    ONLY_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("coordinates", Domain::Free(NUMBERS)),
        constant("sampling_mode", STRING, Need::Required),
        constant("padding_mode", STRING, Need::Required),
        constant("padding_value", Domain::T(FLOATS), Need::Required),
        constant("coordinates_mode", STRING, Need::Required),
        constant("align_corners", BOOL, Need::Required),
    ],
    None,
    Cost::moves,
);
pub(super) const RESAMPLE: OpDef = op(
    "resample",
    "`x` sampled at `coordinates`.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("coordinates", Domain::Free(GATHERABLE)),
        constant("sampling_mode", STRING, Need::Required),
        constant("padding_mode", STRING, Need::Required),
        constant("padding_value", Domain::T(FLOATS), Need::Required),
        constant("coordinates_mode", STRING, Need::Required),
        constant("align_corners", BOOL, Need::Required),
    ],
    None,
    Cost::moves,
);
pub(super) const RESIZE: OpDef = op(
    "resize",
    "`x` resized to `shape`.",
    FROM_17,
    &[
        tensor("x", Domain::T(NUMBERS)),
        tensor("shape", Domain::Free(&[DType::I16, DType::I32, DType::U16, DType::U32])),
        constant("resized_dims", Domain::Free(&[DType::U32]), Need::Required),
        constant("interpolation_mode", STRING, Need::Default(Lit::Text("LINEAR"))),
        constant("sampling_mode", STRING, Need::Default(Lit::Text("DEFAULT"))),
    ],
    None,
    Cost::moves,
);
pub(super) const RESIZE_BILINEAR: OpDef = op(
    "resize_bilinear",
    "`x` resized to a height and width, linearly.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("target_size_height", I32, Need::Default(Lit::Int(1))),
        constant("target_size_width", I32, Need::Default(Lit::Int(1))),
        constant("sampling_mode", STRING, Need::Default(Lit::Text("DEFAULT"))),
    ],
    None,
    Cost::moves,
);
pub(super) const RESIZE_NEAREST_NEIGHBOR: OpDef = op(
    "resize_nearest_neighbor",
    "`x` resized to a height and width, by nearest elements.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("target_size_height", I32, Need::Required),
        constant("target_size_width", I32, Need::Required),
    ],
    None,
    Cost::moves,
);
pub(super) const UPSAMPLE_BILINEAR_15: OpDef = op(
    "upsample_bilinear",
    "`x` resized by factors, linearly.",
    ONLY_15,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("scale_factor_height", Domain::U(&[DType::F32, DType::I32]), Need::Optional),
        constant("scale_factor_width", Domain::U(&[DType::F32, DType::I32]), Need::Optional),
        constant("align_corners", BOOL, Need::Default(Lit::True)),
    ],
    None,
    Cost::moves,
);
pub(super) const UPSAMPLE_BILINEAR: OpDef = op(
    "upsample_bilinear",
    "`x` resized by factors, linearly.",
    FROM_16,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("scale_factor_height", Domain::U(&[DType::F32, DType::I32]), Need::Optional),
        constant("scale_factor_width", Domain::U(&[DType::F32, DType::I32]), Need::Optional),
        constant("align_corners", BOOL, Need::Default(Lit::True)),
        constant("half_pixel_centers", BOOL, Need::Optional),
    ],
    None,
    Cost::moves,
);
pub(super) const UPSAMPLE_NEAREST_NEIGHBOR: OpDef = op(
    "upsample_nearest_neighbor",
    "`x` resized by factors, by nearest elements.",
    ALL,
    &[
        tensor("x", Domain::T(FLOATS)),
        constant("scale_factor_height", Domain::U(&[DType::F32, DType::I32]), Need::Optional),
        constant("scale_factor_width", Domain::U(&[DType::F32, DType::I32]), Need::Optional),
    ],
    None,
    Cost::moves,
);
