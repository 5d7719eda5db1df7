import type { SlotRelease } from '../../../../src/os/lifecycle/slots/slot.ts'

/** No multiple of a sector, so that what is written comes in parts of them; large files come in few pieces. */
const pieceOf = (size: number) => (size > 1 << 20 ? 100_001 : 1000)

/** A release whose files are small and all differ from those of another version. */
export function testRelease(version: string, size = 3000): SlotRelease {
  const sha256 = (data: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(data).digest('hex')
  const files = new Map<string, { bytes: Buffer; sha256: string }>()
  const file = (name: string) => {
    const known = files.get(name)
    if (known) return known
    const bytes = Buffer.alloc(size, `${name} of ${version};`)
    const made = { bytes, sha256: sha256(bytes) }
    files.set(name, made)
    return made
  }
  return {
    version,
    rootHash: sha256(`root of ${version}`),
    image: sha256(`image of ${version}`).slice(0, 16),
    commandLine: 'console=ttyS0 slab_nomerge pti=on',
    size: () => size,
    sha256: (name) => file(name).sha256,
    async *open(name) {
      const { bytes } = file(name)
      const piece = pieceOf(size)
      for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
    },
  }
}
