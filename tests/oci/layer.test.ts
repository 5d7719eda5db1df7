import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LayerEntry, Segment } from '../../src/oci/image.ts'
import { layerSegments, layerSize, parentEntries } from '../../src/oci/layer.ts'

const long = `${'d'.repeat(90)}/${'e'.repeat(60)}/file`

function archive(entries: LayerEntry[], files: Record<string, string>): Buffer {
  const bytes = (segment: Segment) => ('bytes' in segment ? segment.bytes : Buffer.from(files[segment.file]!))
  return Buffer.concat(layerSegments(entries).map(bytes))
}

test('tar(1) reads a layer with its modes, owners, links and long paths', () => {
  const entries: LayerEntry[] = [
    ...parentEntries(['usr/bin/kube', long]),
    { path: 'usr/bin/kube', type: 'file', mode: 0o755, size: 5, source: '/usr/bin/kube' },
    { path: 'usr/bin/kubelet', type: 'symlink', mode: 0o777, target: 'kube' },
    { path: long, type: 'file', mode: 0o640, uid: 60, gid: 61, size: 513, source: '/long' },
    { path: 'empty', type: 'file', mode: 0o644, size: 0, source: '/none' },
  ]
  const folder = mkdtempSync(join(tmpdir(), 'ichor-tar-'))
  try {
    const tar = archive(entries, { '/usr/bin/kube': 'hello', '/long': 'x'.repeat(513) })
    expect(tar.length).toBe(layerSize(entries))
    writeFileSync(join(folder, 'layer.tar'), tar)
    const listed = Bun.spawnSync(['tar', '-tvf', 'layer.tar', '--numeric-owner', '--utc'], { cwd: folder })
    expect(listed.stderr.toString()).toBe('')
    const lines = listed.stdout.toString().trim().split('\n')
    expect(lines.map((line) => line.replace(/ +/g, ' '))).toEqual([
      `drwxr-xr-x 0/0 0 1970-01-01 00:00 ${'d'.repeat(90)}/`,
      `drwxr-xr-x 0/0 0 1970-01-01 00:00 ${'d'.repeat(90)}/${'e'.repeat(60)}/`,
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/',
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/bin/',
      '-rwxr-xr-x 0/0 5 1970-01-01 00:00 usr/bin/kube',
      'lrwxrwxrwx 0/0 0 1970-01-01 00:00 usr/bin/kubelet -> kube',
      `-rw-r----- 60/61 513 1970-01-01 00:00 ${long}`,
      '-rw-r--r-- 0/0 0 1970-01-01 00:00 empty',
    ])
    expect(Bun.spawnSync(['tar', '-xf', 'layer.tar', 'usr/bin/kube'], { cwd: folder }).exitCode).toBe(0)
    expect(readFileSync(join(folder, 'usr/bin/kube'), 'utf8')).toBe('hello')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the same entries give the same bytes', () => {
  const entries: LayerEntry[] = [{ path: 'a', type: 'file', mode: 0o644, size: 3, source: '/a' }]
  const once = archive(entries, { '/a': 'abc' })
  expect(archive(structuredClone(entries), { '/a': 'abc' }).equals(once)).toBe(true)
  expect(once.length % 512).toBe(0)
})
