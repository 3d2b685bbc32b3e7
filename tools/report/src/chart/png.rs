//! A picture of dots from one of lines, with fonts of our own: machines that run tests often have none.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

const REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.ttf");
/// Dots per pixel of the drawing: sharp on dense screens and on paper.
const SCALE: f32 = 2.0;

/// The picture could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The drawing is not one that the renderer understands.
    #[error("the drawing cannot be read")]
    Drawing(#[from] resvg::usvg::Error),
    /// The picture's size is none.
    #[error("the drawing has no size")]
    Size,
    /// The picture cannot be encoded.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}

/// Renders one of our own drawings.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut options = Options { font_family: "DejaVu Sans".into(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or(PngError::Size)?;
    let mut picture = Pixmap::new(size.width(), size.height()).ok_or(PngError::Size)?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|error| PngError::Encoding(error.to_string()))
}
