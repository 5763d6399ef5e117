//! Skin weights: for each vertex a short list of (joint, weight), in f64.

/// How much one joint moves one vertex. `joint` is the bone's index in its skeleton.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Influence {
    pub joint: u32,
    pub weight: f64,
}

/// Skin weights of a mesh: for each vertex its influences.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    ends: Vec<usize>,
    influences: Vec<Influence>,
}

impl Weights {
    /// No vertices yet; `push` adds them in order.
    pub fn with_capacity(vertices: usize, influences: usize) -> Self {
        Self { ends: Vec::with_capacity(vertices), influences: Vec::with_capacity(influences) }
    }

    /// The vertices of several parts, one part after the other.
    pub fn concat(parts: &[Self]) -> Self {
        let vertices = parts.iter().map(Self::len).sum();
        let mut all = Self::with_capacity(vertices, parts.iter().map(|p| p.influences.len()).sum());
        for part in parts {
            let before = all.influences.len();
            all.influences.extend_from_slice(&part.influences);
            all.ends.extend(part.ends.iter().map(|end| end + before));
        }
        all
    }

    /// Adds the next vertex.
    pub fn push(&mut self, influences: impl IntoIterator<Item = Influence>) {
        self.influences.extend(influences);
        self.ends.push(self.influences.len());
    }

    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The influences of a vertex.
    pub fn of(&self, vertex: usize) -> &[Influence] {
        let start = if vertex == 0 { 0 } else { self.ends[vertex - 1] };
        &self.influences[start..self.ends[vertex]]
    }

    /// The weight of a joint at a vertex; 0 where it has none.
    pub fn weight(&self, vertex: usize, joint: u32) -> f64 {
        self.of(vertex).iter().filter(|i| i.joint == joint).map(|i| i.weight).sum()
    }

    /// The vertices in order, each as its influences.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Influence]> + '_ {
        (0..self.len()).map(|v| self.of(v))
    }

    /// The largest number of influences of a vertex.
    pub fn most_influences(&self) -> usize {
        self.iter().map(<[_]>::len).max().unwrap_or(0)
    }

    /// The weights of `of_vertex.len()` vertices, vertex v taking those of row `of_vertex[v]` here: scatters the weights of
    /// welded places back to the vertices.
    pub fn scatter(&self, of_vertex: &[u32]) -> Self {
        let total = of_vertex.iter().map(|&p| self.of(p as usize).len()).sum();
        let mut out = Self::with_capacity(of_vertex.len(), total);
        for &place in of_vertex {
            out.push(self.of(place as usize).iter().copied());
        }
        out
    }
}
