//! What the tables of both rigs have in common.

/// Keys of the table `p`, in their order; neither consecutive nor equal to a row number.
pub const PARENTS: [i64; 20] =
    [3, 7, 11, 19, 20, 26, 33, 41, 52, 64, 77, 90, 91, 104, 112, 119, 127, 133, 140, 158];
