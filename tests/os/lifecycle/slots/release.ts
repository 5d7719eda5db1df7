import type { SlotRelease } from '../../../../src/os/lifecycle/slots/slot.ts'

/** A release whose files are small and all differ from those of another version. */
export function testRelease(version: string, size = 3000): SlotRelease {
  const bytes = (name: string) => Buffer.alloc(size, `${name} of ${version};`)
  const sha256 = (data: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(data).digest('hex')
  return {
    version,
    rootHash: sha256(`root of ${version}`),
    image: sha256(`image of ${version}`).slice(0, 16),
    commandLine: 'console=ttyS0 slab_nomerge pti=on',
    size: () => size,
    sha256: (name) => sha256(bytes(name)),
    async *open(name) {
      const whole = bytes(name)
      for (let at = 0; at < whole.length; at += 1000) yield whole.subarray(at, at + 1000)
    },
  }
}
