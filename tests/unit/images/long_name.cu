// A kernel whose mangled name has more than 300 bytes, as those of template libraries do. Both vendors' compilers take it.
#ifdef __HIP__
#define KERNEL   __attribute__((global, amdgpu_flat_work_group_size(1, 64)))
#define POSITION (__builtin_amdgcn_workitem_id_x() + 64 * __builtin_amdgcn_workgroup_id_x())
#else
#define KERNEL   __global__ __launch_bounds__(64)
#define POSITION (threadIdx.x + 64 * blockIdx.x)
#endif

namespace a_namespace_with_a_name_that_says_all_that_there_is_to_say_about_its_purpose_and_some_more {

struct arguments {
    const float *x;
    float *y;
    unsigned count;
    unsigned reserved;
};

template <typename Inner>
struct a_policy_that_wraps_another_policy_and_says_so_in_full_for_every_reader_of_a_profile {};
struct a_policy_that_wraps_no_other_and_is_therefore_the_innermost_of_all_the_policies_here {};

template <typename Policy>
KERNEL void scale(arguments a) {
    unsigned i = POSITION;
    if (i < a.count) a.y[i] = a.x[i] * 2;
}

template KERNEL void
scale<a_policy_that_wraps_another_policy_and_says_so_in_full_for_every_reader_of_a_profile<
    a_policy_that_wraps_no_other_and_is_therefore_the_innermost_of_all_the_policies_here>>(arguments);

}
