import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../../../src/linux/fs/files.ts'
import { archiveFiles, folderFiles } from '../../../../src/os/lifecycle/release/installer-image.ts'
import { mergeParameters, openRelease, ReleaseError, slotRelease, verifyFiles } from '../../../../src/os/lifecycle/release/release.ts'
import { installerLayout, releaseFiles, signingKey, tarOf, writeTree } from './installer.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-release-'))
afterAll(() => rmSync(folder, { recursive: true }))
const kernel = { files }
const key = signingKey()

function archive(name: string, content: Buffer) {
  const path = join(folder, name)
  writeFileSync(path, content)
  return archiveFiles(kernel, path, statSync(path).size, 'a test', 'amd64')
}

const text = async (parts: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(parts)).toString()

test('a release is read in place from an OCI layout archive', async () => {
  const content = releaseFiles('v1.13.1', key)
  const release = await openRelease(await archive('good.tar', tarOf(installerLayout(content))), key.publicKey, 'amd64')
  expect(release.manifest.version).toBe('v1.13.1')
  expect(release.image).toMatch(/^[0-9a-f]{16}$/)
  expect(await text(release.open('root.sqsh'))).toBe(content.get('root.sqsh')!.toString())
  expect(release.size('cmdline')).toBe(34)
  await verifyFiles(
    release,
    release.manifest.files.map(({ name }) => name),
  )
})

test('a file is opened when it is read, so that none stays open', async () => {
  const path = join(folder, 'closed.tar')
  writeFileSync(path, tarOf(installerLayout(releaseFiles('v1.13.1', key))))
  const opened: ReturnType<typeof files.openRead>[] = []
  const recording = {
    files: {
      ...files,
      openRead(...args: Parameters<typeof files.openRead>) {
        const stream = files.openRead(...args)
        opened.push(stream)
        return stream
      },
    },
  }
  const found = await archiveFiles(recording, path, statSync(path).size, 'a test', 'amd64')
  const before = opened.length
  found.open('root.sqsh')
  folderFiles(recording, folder).open('closed.tar')
  expect([opened.length, opened.every(({ destroyed }) => destroyed)]).toEqual([before, true])
})

test('a release is read from a directory, as on a medium', async () => {
  writeTree(join(folder, 'medium'), releaseFiles('v1.13.1', key))
  const release = await openRelease(folderFiles(kernel, join(folder, 'medium')), key.publicKey, 'amd64')
  expect(await text(release.open('grub/boot.img'))).toBe('b'.repeat(512))
})

test('a release without a trusted signature is refused', async () => {
  const other = releaseFiles('v1.13.1', signingKey())
  await expect(openRelease(await archive('other.tar', tarOf(installerLayout(other))), key.publicKey, 'amd64')).rejects.toThrow(
    'not signed with the key that this system trusts',
  )
  const unsigned = releaseFiles('v1.13.1', key)
  unsigned.delete('manifest.sig')
  await expect(openRelease(await archive('unsigned.tar', tarOf(installerLayout(unsigned))), key.publicKey, 'amd64')).rejects.toThrow(
    'it has no "manifest.sig"',
  )
})

test('an image for another machine is refused', async () => {
  const foreign = releaseFiles('v1.13.1', key, { arch: 'arm64' })
  await expect(openRelease(await archive('arm.tar', tarOf(installerLayout(foreign, 'amd64'))), key.publicKey, 'amd64')).rejects.toThrow(
    'it is for arm64, this machine is amd64',
  )
  await expect(archive('armlayer.tar', tarOf(installerLayout(foreign, 'arm64')))).rejects.toThrow('it has nothing for amd64')
})

test('a changed byte is found before anything is written', async () => {
  const content = releaseFiles('v1.13.1', key)
  content.get('root.sqsh')!.writeUInt8(1, 777)
  const release = await openRelease(await archive('changed.tar', tarOf(installerLayout(content))), key.publicKey, 'amd64')
  await expect(verifyFiles(release, ['cmdline', 'root.sqsh'])).rejects.toThrow('"root.sqsh" is damaged; nothing was changed')
})

test('a truncated archive fails with a one-line error, wherever it ends', async () => {
  const whole = tarOf(installerLayout(releaseFiles('v1.13.1', key, { size: 600 })))
  for (let length = 0; length < whole.length - 1024; length += 1999) {
    const opened = archive('cut.tar', whole.subarray(0, length)).then((found) => openRelease(found, key.publicKey, 'amd64'))
    const error = await opened.then(() => undefined).catch((thrown: Error) => thrown)
    expect([length, error?.name]).toEqual([length, 'ReleaseError'])
    expect(error?.message).not.toContain('\n')
  }
})

test('anything but an image archive is refused', async () => {
  await expect(archive('text.tar', Buffer.alloc(2048, 'x'))).rejects.toThrow('tar archive: ')
  await expect(archive('other-tar.tar', tarOf(new Map([['a', Buffer.from('b')]])))).rejects.toThrow('"index.json" is missing')
  const compressed = installerLayout(releaseFiles('v1.13.1', key))
  for (const [name, bytes] of compressed) {
    if (!name.startsWith('blobs/') || !bytes.toString().includes('layer.v1.tar')) continue
    // Its digest differs now, which is reported first.
    compressed.set(name, Buffer.from(bytes.toString().replace('layer.v1.tar', 'layer.v1.tar+gzip')))
  }
  await expect(archive('gzip.tar', tarOf(compressed))).rejects.toThrow('is damaged')
})

test('parameters of the machine are added once', () => {
  expect(mergeParameters('console=ttyS0 pti=on\n', ['console=ttyS0', 'talos.config=http://10.0.0.1/c'])).toBe(
    'console=ttyS0 pti=on talos.config=http://10.0.0.1/c',
  )
})

test('every read of a file is verified: a file replaced after the check fails', async () => {
  const content = releaseFiles('v1.13.1', key)
  writeTree(join(folder, 'swapped'), content)
  const release = await openRelease(folderFiles(kernel, join(folder, 'swapped')), key.publicKey, 'amd64')
  const names = ['cmdline', 'systemd-boot.efi', 'grub/boot.img', 'grub/core.img']
  await verifyFiles(release, names)
  for (const name of names) writeFileSync(join(folder, 'swapped', name), Buffer.alloc(content.get(name)!.length, 'x'))
  for (const name of names) await expect(text(release.open(name))).rejects.toThrow(`"${name}" is damaged`)
  await expect(slotRelease(release)).rejects.toThrow('"cmdline" is damaged')
})

test.each([
  'null',
  '[]',
  '5',
  '{"manifests":[null]}',
  '{"manifests":5}',
  '{"manifests":[{"digest":5}]}',
  '{"layers":[null]}',
  '{"layers":{}}',
])('a document of the shape %s is refused in one line', async (document) => {
  const digest = new Bun.CryptoHasher('sha256').update(document).digest('hex')
  const index = JSON.stringify({ manifests: [{ digest: `sha256:${digest}` }] })
  const layout = (top: string) =>
    tarOf(
      new Map([
        ['index.json', Buffer.from(top)],
        [`blobs/sha256/${digest}`, Buffer.from(document)],
      ]),
    )
  for (const [name, top] of [
    ['index', document],
    ['blob', index],
  ] as const) {
    const error = await archive(`${name}.tar`, layout(top))
      .then((files) => openRelease(files, key.publicKey, 'amd64'))
      .catch((reason) => reason)
    expect(error).toBeInstanceOf(ReleaseError)
  }
})
