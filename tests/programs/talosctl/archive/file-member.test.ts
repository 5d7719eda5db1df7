import { expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileMember } from '../../../../src/programs/talosctl/archive/file-member.ts'
import { tarEntries } from '../../../../src/wire/tar/read.ts'
import { writeTar } from '../../../../src/wire/tar/write.ts'

test('a file that grows is archived as long as it was, one that shrinks is not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-member-'))
  try {
    const path = join(folder, 'console.log')
    writeFileSync(path, 'booted\n', { mode: 0o600 })
    const [grown, shrunk] = [fileMember('node.log', path), fileMember('node.log', path)]
    appendFileSync(path, 'and more')
    const texts: string[] = []
    for await (const { name, mode, content } of tarEntries(writeTar([grown])))
      texts.push(`${name} ${mode.toString(8)} ${Buffer.concat(await Array.fromAsync(content))}`)
    expect(texts).toEqual(['node.log 644 booted\n'])
    truncateSync(path, 3)
    await expect(Array.fromAsync(writeTar([shrunk]))).rejects.toThrow('tar entry "node.log": its content has changed')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
