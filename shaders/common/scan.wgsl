// Sums over the invocations of a workgroup, for two counts at once (Hillis and Steele 1986).

var<workgroup> sums: array<vec2<u32>, WORKGROUP>;

// The sum of the values of all invocations up to this one. All of the workgroup must call it; the total is
// sums[WORKGROUP - 1] afterwards.
fn inclusive_sum(local: u32, value: vec2<u32>) -> vec2<u32> {
    // Nobody may still be reading the sums of the call before.
    workgroupBarrier();
    sums[local] = value;
    workgroupBarrier();
    for (var reach = 1u; reach < WORKGROUP; reach *= 2u) {
        var sum = sums[local];
        if local >= reach {
            sum += sums[local - reach];
        }
        workgroupBarrier();
        sums[local] = sum;
        workgroupBarrier();
    }
    return sums[local];
}

