import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { saveSupport } from '../../../../src/programs/talosctl/cluster/support-archive.ts'
import { textIo } from '../peer.ts'

test('a support archive that cannot be made is reported, and does not keep a cluster from being destroyed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-support-'))
  try {
    const io = textIo()
    const file = join(folder, 'support.zip')
    await saveSupport(io, folder, undefined, file)
    expect(io.written.err).toBe(`support archive "${file}": the cluster was never finished, nothing reaches its nodes\n`)
    expect(existsSync(file)).toBe(false)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
