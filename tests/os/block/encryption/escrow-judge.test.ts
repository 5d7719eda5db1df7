/** Debian's cryptsetup judges the keys that a machine makes for recipients. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { alice, bob, disk, escrowed, start, whom } from './disks-in-memory.ts'

const cryptsetup = Bun.which('cryptsetup', { PATH: `${process.env.PATH}:/usr/sbin:/sbin` })

test.skipIf(!cryptsetup)(
  'cryptsetup opens a volume with the key of an escrow, as long as that is in force',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ichor-escrow-'))
    const state = await disk('STATE')
    const opens = async (key: string) => {
      writeFileSync(join(folder, 'image'), state.bytes())
      const argv = [cryptsetup ?? '', 'open', '--test-passphrase', '--disable-locks', '--key-file=-', join(folder, 'image')]
      return (await Bun.spawn(argv, { stdin: Buffer.from(key), stderr: 'ignore' }).exited) === 0
    }
    try {
      await start({ STATE: state }).provide('STATE', whom(alice))
      const key = await escrowed(state, alice)
      expect(await opens(key)).toBe(true)
      await start({ STATE: state }).provide('STATE', whom(bob))
      expect([await opens(key), await opens(await escrowed(state, bob))]).toEqual([false, true])
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
  60_000,
)
