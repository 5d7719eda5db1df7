/** A volume on a disk in memory, for the tests. */
import type { WriteStep } from '../../../src/wire/gpt/table.ts'
import { newVolume } from '../../../src/wire/luks2/format.ts'
import { memoryDisk } from '../../support/memory-disk.ts'

/** The least cost of Argon2. No volume of a machine is protected so weakly. */
export const cheap = { time: 1, memory: 32, cpus: 1 }
export const secret = (text: string) => new Uint8Array(Buffer.from(text))
export const xts = { cipher: 'aes-xts-plain64', keySize: 64, sectorSize: 512 } as const

/** Writes as the machine does: each step is flushed before the next. */
export async function apply(disk: ReturnType<typeof memoryDisk>, steps: readonly WriteStep[]): Promise<void> {
  for (const step of steps) {
    for (const { offset, bytes } of step) await disk.write(offset, bytes)
    await disk.flush()
  }
}

/** A new volume of 20 MiB with one key. */
export async function volume(passphrase = 'first', encryption: Parameters<typeof newVolume>[0] = xts, slot = 0) {
  const disk = memoryDisk(20 << 20)
  const made = await newVolume(encryption, { slot, passphrase: secret(passphrase), cost: cheap })
  await apply(disk, made.steps)
  return { disk, ...made }
}
