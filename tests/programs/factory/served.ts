import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { formatManifest } from '../../../src/oci/image-manifest.ts'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import { Schematics } from '../../../src/programs/factory/schematics.ts'
import { type FactoryOptions, serveFactory } from '../../../src/programs/factory/server.ts'

/** What the releases are signed with. */
export const releaseKey = generateKeyPairSync('ed25519').privateKey

/** A folder of its own for a test. */
export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'ichor-factory-'))

/** What the files of a release stand for in tests. */
export const contents = {
  vmlinuz: Buffer.from('kernel '.repeat(1000)),
  initramfs: Buffer.from('initramfs '.repeat(50_000)),
  cmdline: 'talos.platform=metal console=tty0 console=ttyS0 pti=on panic=10 gpt\n',
}

/** Writes a release as mkimage.sh does. */
export function writeRelease(folder: string, version: string): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, `ichor-${name}`), content)
  const manifest = { version, arch: 'amd64', kubernetes: 'v1.36.3', kernel: '6.1.0', rootHash: 'ab'.repeat(32), files: [] }
  writeFileSync(join(folder, 'ichor-amd64.manifest'), formatManifest(manifest))
}

/** A factory over a folder, with a client of it. */
export function served(images: string, options: Partial<FactoryOptions> = {}) {
  const builds = new Builds()
  const common = {
    host: '127.0.0.1',
    port: 0,
    schematics: new Schematics(),
    workshop: { builds, signers: { key: releaseKey } },
    log: silent,
  }
  const factory = serveFactory({ ...common, images, ...options })
  const ask = (path: string, init?: RequestInit) => fetch(`${factory.url}${path}`, init)
  const close = async () => {
    await factory.close()
    builds.close()
  }
  return { ...factory, ask, [Symbol.asyncDispose]: close }
}
