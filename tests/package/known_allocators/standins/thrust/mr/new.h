// A stand-in for Thrust's header: see README.md.
#ifndef STANDIN_THRUST_MR_NEW_H
#define STANDIN_THRUST_MR_NEW_H

namespace thrust::mr
{
struct new_delete_resource {
};
} // namespace thrust::mr

#endif
