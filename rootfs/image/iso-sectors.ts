/** The unit of ISO 9660. */

/** Bytes of a sector. */
export const sector = 2048
/** Sectors before the volume descriptors, for the boot sector of sticks. */
export const systemArea = 16

/** Bytes of the sectors that so many bytes take. */
export const roundUp = (size: number) => Math.ceil(size / sector) * sector
/** Sectors that so many bytes take. */
export const sectors = (size: number) => Math.ceil(size / sector)

/** Something has no place in the format. */
export class IsoError extends Error {
  override name = 'IsoError'
}
