//! The demo's bones, inside the body of `body.rs`.

use glam::DVec3;
use skinbind::Result;
use skinbind::model::{Bone, Skeleton};

/// Name, parent, head, tail of the bones in the middle.
const MIDDLE: [(&str, &str, [f64; 3], [f64; 3]); 6] = [
    ("hips", "", [0.0, 0.93, 0.0], [0.0, 1.03, 0.0]),
    ("spine", "hips", [0.0, 1.03, 0.0], [0.0, 1.15, 0.005]),
    ("chest", "spine", [0.0, 1.15, 0.005], [0.0, 1.36, -0.01]),
    ("neck", "chest", [0.0, 1.38, -0.015], [0.0, 1.50, 0.0]),
    ("head", "neck", [0.0, 1.50, 0.0], [0.0, 1.72, 0.01]),
    ("jaw", "head", [0.0, 1.555, 0.03], [0.0, 1.525, 0.09]),
];

/// The same for the left side; parents of the middle have no ending.
const SIDE: [(&str, &str, [f64; 3], [f64; 3]); 16] = [
    ("clavicle", "chest", [0.025, 1.345, -0.01], [0.135, 1.338, -0.01]),
    ("upper_arm", "clavicle", [0.155, 1.338, -0.01], [0.42, 1.34, -0.012]),
    ("forearm", "upper_arm", [0.42, 1.34, -0.012], [0.66, 1.34, -0.004]),
    ("hand", "forearm", [0.66, 1.34, -0.004], [0.745, 1.34, -0.005]),
    ("thumb_1", "hand", [0.690, 1.332, 0.030], [0.722, 1.327, 0.072]),
    ("thumb_2", "thumb_1", [0.722, 1.327, 0.072], [0.752, 1.322, 0.112]),
    ("index_1", "hand", [0.762, 1.34, 0.041], [0.812, 1.339, 0.054]),
    ("index_2", "index_1", [0.812, 1.339, 0.054], [0.858, 1.338, 0.066]),
    ("middle_1", "hand", [0.772, 1.34, -0.006], [0.827, 1.339, -0.007]),
    ("middle_2", "middle_1", [0.827, 1.339, -0.007], [0.880, 1.338, -0.008]),
    ("little_1", "hand", [0.757, 1.34, -0.053], [0.799, 1.339, -0.067]),
    ("little_2", "little_1", [0.799, 1.339, -0.067], [0.838, 1.338, -0.080]),
    ("thigh", "hips", [0.09, 0.90, -0.005], [0.104, 0.50, 0.006]),
    ("shin", "thigh", [0.104, 0.50, 0.006], [0.110, 0.09, -0.022]),
    ("foot", "shin", [0.110, 0.09, -0.022], [0.117, 0.038, 0.085]),
    ("toes", "foot", [0.117, 0.038, 0.085], [0.119, 0.028, 0.160]),
];

/// The skeleton: 38 bones, those of a side ending in `.L` and `.R`.
///
/// # Errors
/// None in practice; those of [`Skeleton::new`].
pub fn skeleton() -> Result<Skeleton> {
    let mut bones: Vec<Bone> = Vec::new();
    for (name, parent, head, tail) in MIDDLE {
        add(&mut bones, name.to_owned(), parent, DVec3::from_array(head), DVec3::from_array(tail));
    }
    for (ending, mirror) in [("L", DVec3::ONE), ("R", DVec3::new(-1.0, 1.0, 1.0))] {
        for (name, parent, head, tail) in SIDE {
            let of_middle = MIDDLE.iter().any(|(middle, ..)| *middle == parent);
            let parent = if of_middle { parent.to_owned() } else { format!("{parent}.{ending}") };
            let (head, tail) = (DVec3::from_array(head) * mirror, DVec3::from_array(tail) * mirror);
            add(&mut bones, format!("{name}.{ending}"), &parent, head, tail);
        }
    }
    Skeleton::new(bones)
}

fn add(bones: &mut Vec<Bone>, name: String, parent: &str, head: DVec3, tail: DVec3) {
    let parent = bones.iter().position(|b| b.name == parent);
    bones.push(Bone { name, head, tail, parent, deform: true });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bone_but_the_hips_has_a_parent() {
        let skeleton = skeleton().unwrap();
        assert_eq!(skeleton.len(), 38);
        let roots: Vec<&str> =
            skeleton.bones().iter().filter(|b| b.parent.is_none()).map(|b| b.name.as_str()).collect();
        assert_eq!(roots, ["hips"]);
    }
}
