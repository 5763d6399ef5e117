//! Vertices without weights: to the root, or to the nearest bound surface.

use crate::edit::rows::place_rows;
use crate::edit::smooth::check_length;
use crate::error::Result;
use crate::influence::MOST_INFLUENCES;
use crate::influence::{Limits, fill_unreached};
use crate::model::{Influence, Mesh, Skeleton, Weights};
use crate::progress::Progress;

/// Where vertices without weights go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bare {
    /// Wholly to the first bone without a parent, as MakeHuman does.
    Root,
    /// To the nearest surface that has weights, blended by barycentric coordinates; to the nearest bone that deforms where
    /// nothing has weights.
    Nearest,
}

/// Gives vertices without weights some; how many there were. The others keep theirs as they are. Locks do not matter: such
/// a vertex has nothing to keep.
///
/// # Errors
/// [`crate::Error::Length`] where there is not one row a vertex, and those of [`fill_unreached`].
pub fn fill_bare(mesh: &Mesh, weights: &Weights, skeleton: &Skeleton, to: Bare) -> Result<(Weights, usize)> {
    check_length(mesh, weights)?;
    let is_bare = |row: &[Influence]| !row.iter().any(|i| i.weight > 0.0);
    let bare = weights.iter().filter(|row| is_bare(row)).count();
    if bare == 0 {
        return Ok((weights.clone(), 0));
    }
    let weld = mesh.weld();
    let places = match to {
        Bare::Root => {
            let root = skeleton.bones().iter().position(|b| b.parent.is_none()).unwrap_or(0) as u32;
            let mut all = Weights::with_capacity(weld.places(), weld.places());
            (0..weld.places()).for_each(|_| all.push([Influence { joint: root, weight: 1.0 }]));
            all
        }
        Bare::Nearest => {
            let use_bone: Vec<bool> = skeleton.bones().iter().map(|b| b.deform).collect();
            let limits = Limits { max_influences: MOST_INFLUENCES, threshold: 0.0 };
            let rows = place_rows(weights, &weld);
            let components = mesh.components(&weld);
            fill_unreached(mesh, &weld, &components, skeleton, &use_bone, rows, &limits, Progress::NONE)?.weights
        }
    };
    let mut filled = Weights::with_capacity(weights.len(), 4 * weights.len());
    for (row, &place) in weights.iter().zip(&weld.place_of) {
        filled.push(if is_bare(row) { places.of(place as usize) } else { row }.iter().copied());
    }
    Ok((filled, bare))
}
