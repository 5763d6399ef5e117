//! What a stage did that its user should know: the warnings of a report.

use serde::Serialize;

/// The kind of a warning; `docs/troubleshooting.md` has an entry for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// A bone crosses no solid voxel; it starts at the nearest one.
    BoneOutside,
    /// A bone ended up with no weight at any vertex.
    BoneWithoutWeight,
    /// A part of the mesh that no bone reaches took the weights of the nearest bound surface.
    ComponentUnreached,
    /// Two parts of the surface are nearer to each other than the voxels can tell apart.
    PartsTouch,
    /// Triangles without area.
    DegenerateFaces,
    /// The surface has holes; its inside was decided by the winding number.
    SurfaceOpen,
    /// The skeleton is much larger than the mesh, or lies far from it: different units?
    SkeletonSize,
    /// A name was changed so that it is used once only.
    Renamed,
    /// The method asked for could not be used and another was.
    Fallback,
    /// A part is too far from what its weights are taken from; it follows the nearest place as a whole.
    Far,
    /// Anything a file holds that was left out.
    FileIgnored,
}

/// One warning. The message is a whole sentence and names the thing it is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    pub code: Code,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bone: Option<String>,
    /// Number of the connected component, from 0 by first vertex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<usize>,
    /// How many vertices it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertices: Option<usize>,
}

impl Warning {
    /// A warning about the mesh or the run as a whole.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), bone: None, component: None, vertices: None }
    }

    /// The same, about this bone.
    pub fn bone(mut self, name: impl Into<String>) -> Self {
        self.bone = Some(name.into());
        self
    }

    /// The same, about this component.
    pub fn component(mut self, component: usize) -> Self {
        self.component = Some(component);
        self
    }

    /// The same, about so many vertices.
    pub fn vertices(mut self, count: usize) -> Self {
        self.vertices = Some(count);
        self
    }
}
