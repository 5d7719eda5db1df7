/** Whether a buffer holds nothing but zeros, which formats of disks leave out. */
export const isZero = (bytes: Buffer): boolean => bytes[0] === 0 && bytes.subarray(1).equals(bytes.subarray(0, -1))
