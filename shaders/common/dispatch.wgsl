// Workgroup size of the kernel, set by the host.
override WORKGROUP: u32 = 64u;

// Number of an invocation in a dispatch that was folded over x and y.
fn flat_index(workgroup: vec3<u32>, workgroups: vec3<u32>, local: u32) -> u32 {
    return (workgroup.y * workgroups.x + workgroup.x) * WORKGROUP + local;
}

