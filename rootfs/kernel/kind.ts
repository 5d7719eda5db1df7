/** The kernels that an image can have: the one that Debian has compiled and signed, or the one of rootfs/kernel. */
export const kernelKinds = ['debian', 'hardened'] as const
export type KernelKind = (typeof kernelKinds)[number]
