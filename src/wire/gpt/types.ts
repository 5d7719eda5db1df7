/** Partition types by GUID. */
export const partitionTypes = {
  efi: 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b',
  bios: '21686148-6449-6e6f-744e-656564454649',
  linux: '0fc63daf-8483-4772-8e79-3d69d8477de4',
  swap: '0657fd6d-a4ab-43c4-84e5-0933c84b4f4f',
} as const

/** The name of a partition type. */
export type PartitionType = keyof typeof partitionTypes
