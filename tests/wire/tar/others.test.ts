/** The archives of GNU tar and of Python's tarfile are read here, and those of this writer there. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TarType } from '../../../src/wire/tar/format.ts'
import { findTarPlaces, tarEntries } from '../../../src/wire/tar/read.ts'
import { type TarMember, writeTar } from '../../../src/wire/tar/write.ts'
import { collected, inPieces } from './pieces.ts'

interface Shown {
  readonly name: string
  readonly type: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly modified: number
  readonly target: string
  readonly content: string
}

const folder = mkdtempSync(join(tmpdir(), 'ichor-tar-'))
afterAll(() => rmSync(folder, { recursive: true }))

const long = `${'d'.repeat(120)}/${'f'.repeat(130)}`
const member = (path: string, type: TarType, more: Partial<TarMember> = {}): TarMember => ({
  path,
  type,
  mode: 0o644,
  uid: 1000,
  gid: 100,
  modified: 1_700_000_000,
  ...more,
})
const members: TarMember[] = [
  member('folder', 'directory', { mode: 0o755 }),
  member('folder/plain', 'file', { content: Buffer.from('x'.repeat(1000)) }),
  member('folder/empty', 'file', { mode: 0o4750, content: new Uint8Array() }),
  member('folder/Grüße "=\n', 'file', { content: Buffer.from('names') }),
  member(`${'p'.repeat(60)}/${'n'.repeat(90)}`, 'file', { content: Buffer.from('prefix') }),
  member(long, 'file', { uid: 3_000_000_000, gid: 2_097_152, modified: 8 ** 11, content: Buffer.from('extended') }),
  member('old', 'file', { modified: -5, content: Buffer.from('before 1970') }),
  member('soft', 'symlink', { mode: 0o777, target: 'folder/plain' }),
  member('softer', 'symlink', { mode: 0o777, target: `${'t'.repeat(150)}/ü` }),
  member('twin', 'hardlink', { target: long }),
  member('null', 'character', { device: { major: 1, minor: 3 } }),
  member('disk', 'block', { device: { major: 259, minor: 70_000 } }),
  member('pipe', 'fifo'),
]

const shownMember = ({ path, type, mode, uid = 0, gid = 0, modified = 0, target = '', content }: TarMember): Shown => ({
  name: path,
  type,
  mode,
  uid,
  gid,
  modified,
  target,
  content: content instanceof Uint8Array ? Buffer.from(content).toString() : '',
})

async function shownHere(archive: Uint8Array): Promise<Shown[]> {
  const found: Shown[] = []
  for await (const { name, content, ...rest } of tarEntries(inPieces(archive))) {
    const { type, mode, uid, gid, modified, target } = rest
    const text = (await collected(content)).toString()
    found.push({ name: name.replace(/^\.\/|\/$/g, ''), type, mode, uid, gid, modified, target, content: text })
  }
  const files = found.filter(({ type }) => type === 'file')
  const places = await findTarPlaces(async (offset, length) => archive.subarray(offset, offset + length), archive.length)
  const texts = places.map(({ offset, size }) => Buffer.from(archive.subarray(offset, offset + size)).toString())
  expect(texts).toEqual(files.map(({ content }) => content))
  return found
}

function run(command: readonly string[], stdin?: Uint8Array): Buffer {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    cwd: folder,
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
    ...(stdin && { stdin }),
  })
  expect([exitCode, stderr.toString()]).toEqual([0, ''])
  return stdout
}

const gnu = Bun.which('tar') && Bun.spawnSync(['tar', '--version']).stdout.toString().startsWith('tar (GNU tar)')

describe.skipIf(!gnu)('GNU tar', () => {
  beforeAll(() => {
    const source = join(folder, 'source')
    mkdirSync(join(source, 'd'.repeat(120)), { recursive: true })
    writeFileSync(join(source, 'plain'), 'x'.repeat(1000), { mode: 0o640 })
    writeFileSync(join(source, long), 'long')
    symlinkSync('t'.repeat(150), join(source, 'soft'))
    linkSync(join(source, long), join(source, 'twin'))
    utimesSync(join(source, 'plain'), 1_000_000_000, 1_000_000_000.5)
  })

  test.each(['gnu', 'oldgnu', 'pax'])('writes what is read here: %s', async (format) => {
    const options = [`--format=${format}`, '--sort=name', '--owner=a:3000000000', '--group=b:5']
    const found = await shownHere(run(['tar', '-C', 'source', ...options, '-c', '.']))
    const by = new Map(found.map((entry) => [entry.name, entry]))
    expect([...by.keys()].toSorted()).toEqual(['', 'd'.repeat(120), long, 'plain', 'soft', 'twin'].toSorted())
    const owner = { uid: 3_000_000_000, gid: 5 }
    const modified = 1_000_000_000 + (format === 'pax' ? 0.5 : 0)
    expect(by.get('plain')).toMatchObject({ type: 'file', mode: 0o640, content: 'x'.repeat(1000), modified, ...owner })
    expect(by.get('soft')).toMatchObject({ type: 'symlink', target: 't'.repeat(150), ...owner })
    expect(by.get(long)).toMatchObject({ type: 'file', content: 'long', ...owner })
    expect(by.get('twin')).toMatchObject({ type: 'hardlink', target: `./${long}`, ...owner })
  })

  test.each(['v7', 'ustar'])('writes what is read here: %s', async (format) => {
    const [entry, ...more] = await shownHere(
      run(['tar', '-C', 'source', `--format=${format}`, '--owner=a:7', '--group=b:5', '-c', 'plain']),
    )
    expect(more).toEqual([])
    expect(entry).toMatchObject({
      name: 'plain',
      type: 'file',
      mode: 0o640,
      uid: 7,
      gid: 5,
      modified: 1_000_000_000,
      content: 'x'.repeat(1000),
    })
  })

  test('has sparse files that are refused here', async () => {
    run(['truncate', '--size=1M', 'sparse'])
    for (const format of ['gnu', 'pax'])
      await expect(shownHere(run(['tar', `--format=${format}`, '--sparse', '-c', 'sparse']))).rejects.toThrow('it has a sparse file')
  })

  test('lists what is written here', async () => {
    const lines = run(['tar', '--utc', '--numeric-owner', '--quoting-style=escape', '-tv'], await collected(writeTar(members)))
    expect(
      lines
        .toString()
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/ +/g, ' ')),
    ).toEqual([
      'drwxr-xr-x 1000/100 0 2023-11-14 22:13 folder/',
      '-rw-r--r-- 1000/100 1000 2023-11-14 22:13 folder/plain',
      '-rwsr-x--- 1000/100 0 2023-11-14 22:13 folder/empty',
      '-rw-r--r-- 1000/100 5 2023-11-14 22:13 folder/Grüße "=\\n',
      `-rw-r--r-- 1000/100 6 2023-11-14 22:13 ${'p'.repeat(60)}/${'n'.repeat(90)}`,
      `-rw-r--r-- 3000000000/2097152 8 2242-03-16 12:56 ${long}`,
      '-rw-r--r-- 1000/100 11 1969-12-31 23:59 old',
      'lrwxrwxrwx 1000/100 0 2023-11-14 22:13 soft -> folder/plain',
      `lrwxrwxrwx 1000/100 0 2023-11-14 22:13 softer -> ${'t'.repeat(150)}/ü`,
      `hrw-r--r-- 1000/100 0 2023-11-14 22:13 twin link to ${long}`,
      'crw-r--r-- 1000/100 1,3 2023-11-14 22:13 null',
      'brw-r--r-- 1000/100 259,70000 2023-11-14 22:13 disk',
      'prw-r--r-- 1000/100 0 2023-11-14 22:13 pipe',
    ])
  })

  test('lays out what is written here', async () => {
    const given = members.filter(({ type, path }) => type === 'directory' || (type === 'file' && path.startsWith('folder')))
    run(['tar', '--no-same-owner', '-x'], await collected(writeTar(given)))
    for (const { path, content } of given)
      if (content instanceof Uint8Array) expect(readFileSync(join(folder, path))).toEqual(Buffer.from(content))
  })
})

const listing = `
import io, json, sys, tarfile
types = {tarfile.REGTYPE: 'file', tarfile.LNKTYPE: 'hardlink', tarfile.SYMTYPE: 'symlink', tarfile.CHRTYPE: 'character',
         tarfile.BLKTYPE: 'block', tarfile.DIRTYPE: 'directory', tarfile.FIFOTYPE: 'fifo'}
found = []
with tarfile.open(fileobj=sys.stdin.buffer, mode='r|') as archive:
    for e in archive:
        content = archive.extractfile(e).read().decode() if e.isreg() else ''
        found.append({'name': e.name, 'type': types[e.type], 'mode': e.mode, 'uid': e.uid, 'gid': e.gid, 'modified': e.mtime,
                      'target': e.linkname, 'content': content})
json.dump(found, sys.stdout)
`
const packing = `
import io, json, sys, tarfile
types = {'file': tarfile.REGTYPE, 'hardlink': tarfile.LNKTYPE, 'symlink': tarfile.SYMTYPE, 'character': tarfile.CHRTYPE,
         'block': tarfile.BLKTYPE, 'directory': tarfile.DIRTYPE, 'fifo': tarfile.FIFOTYPE}
with tarfile.open(fileobj=sys.stdout.buffer, mode='w|', format=int(sys.argv[1])) as archive:
    for given in json.load(sys.stdin):
        e = tarfile.TarInfo(given['name'])
        e.type, e.mode, e.uid, e.gid = types[given['type']], given['mode'], given['uid'], given['gid']
        e.mtime, e.linkname = given['modified'], given['target']
        content = given['content'].encode()
        e.size = len(content)
        archive.addfile(e, io.BytesIO(content))
`

describe.skipIf(!Bun.which('python3'))("Python's tarfile", () => {
  test('reads what is written here', async () => {
    const read = JSON.parse(run(['python3', '-c', listing], await collected(writeTar(members))).toString())
    expect(read).toEqual(members.map(shownMember))
  })

  // Formats of tarfile: 0 is ustar, 1 that of GNU tar, 2 pax.
  test.each([
    ['GNU tar’s format', '1'],
    ['pax', '2'],
  ])('writes what is read here: %s', async (_, format) => {
    const given = members
      .map(shownMember)
      .map((entry) => ({ ...entry, modified: format === '2' ? entry.modified + 0.25 : Math.max(0, entry.modified) }))
    expect(await shownHere(run(['python3', '-c', packing, format], Buffer.from(JSON.stringify(given))))).toEqual(given)
  })

  test('writes what is read here: ustar', async () => {
    const given = members.filter(({ path }) => path.startsWith('folder')).map(shownMember)
    expect(await shownHere(run(['python3', '-c', packing, '0'], Buffer.from(JSON.stringify(given))))).toEqual(given)
  })
})
