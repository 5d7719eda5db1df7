/** The first page of a swap area (include/linux/swap.h, union swap_header). */
const page = 4096

/** The header page of an area of `size` bytes; undefined when that is too small. */
export function swapHeader({ size, uuid, label = '' }: { size: number; uuid: string; label?: string | undefined }): Uint8Array | undefined {
  const pages = Math.floor(size / page)
  if (pages < 10) return undefined // the kernel refuses smaller areas
  const header = Buffer.alloc(page)
  header.writeUInt32LE(1, 1024)
  header.writeUInt32LE(Math.min(pages - 1, 0xfffffffe), 1028)
  header.set(Buffer.from(uuid.replaceAll('-', ''), 'hex'), 1036)
  header.write(label.slice(0, 15), 1052, 'latin1')
  header.write('SWAPSPACE2', page - 10, 'latin1')
  return new Uint8Array(header)
}
