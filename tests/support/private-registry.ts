/** A registry over TLS, with a certificate of an authority that only its company knows. */
import { type KeyObject, sign } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'bun'
import { blobFile, manifestFile } from '../../src/oci/image-cache.ts'
import { newCertificate, type PemPair } from '../../src/pki/certificate.ts'
import { tlsKey } from '../../src/pki/key.ts'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'

const digestOf = (bytes: Uint8Array) => `sha256:${new Bun.CryptoHasher('sha256').update(bytes).digest('hex')}`

/** What is beside an image under a tag that is its digest, and a suffix that stands for the layout. */
export interface Signature {
  readonly suffix: '' | '.sig'
  readonly mediaType: string
  readonly bytes: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** A signature in the layout of simple signing: a payload, and annotations with what signed it. */
export const simpleSigning = (bytes: string, annotations: Readonly<Record<string, string>>): Signature => ({
  ...{ suffix: '.sig', mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json', bytes, annotations },
})

/** A signature by a key of P-256. */
export function signedByKey(key: KeyObject, digest: string): Signature {
  const critical = { image: { 'docker-manifest-digest': digest }, type: 'cosign container image signature' }
  const payload = JSON.stringify({ critical })
  return simpleSigning(payload, { 'dev.cosignproject.cosign/signature': sign('sha256', Buffer.from(payload), key).toString('base64') })
}

/**
 * Serves the image `story/part:1`, one empty layer, on an address and under a name until it is closed, and the same image with a
 * signature under other names.
 */
export function servePart(
  hostname: string,
  ca: PemPair,
  name: string,
  signed: (digest: string) => Readonly<Record<string, Signature>> = () => ({}),
): { port: number; close(): Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-registry-'))
  const keep = (path: string, bytes: Uint8Array) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), bytes)
  }
  const described = (mediaType: string, bytes: Uint8Array) => ({ mediaType, digest: digestOf(bytes), size: bytes.length })
  const tar = new Uint8Array(1024) // the end of an archive is two empty blocks
  const layer = gzipSync(tar)
  const rootfs = { type: 'layers', diff_ids: [digestOf(tar)] }
  const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', config: {}, rootfs }))
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const parts = {
    config: described('application/vnd.oci.image.config.v1+json', config),
    layers: [described('application/vnd.oci.image.layer.v1.tar+gzip', layer)],
  }
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, ...parts }))
  for (const bytes of [config, layer]) keep(blobFile(digestOf(bytes)), bytes)
  for (const reference of ['1', digestOf(manifest)]) keep(manifestFile('any.test', 'story/part', reference), manifest)
  const digest = digestOf(manifest)
  for (const [repository, { suffix, mediaType: layerType, bytes, annotations = {} }] of Object.entries(signed(digest))) {
    const content = Buffer.from(bytes)
    keep(blobFile(digestOf(content)), content)
    const layers = [{ ...described(layerType, content), annotations }]
    const signature = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: parts.config, layers }))
    keep(manifestFile('any.test', repository, `${digest.replace(':', '-')}${suffix}`), signature)
    for (const reference of ['1', digest]) keep(manifestFile('any.test', repository, reference), manifest)
  }
  const sans = { dns: [name], ips: [hostname] }
  const own = newCertificate({ ca, subject: { commonName: name }, sans, usage: ['serverAuth'], lifetime: 86_400_000 })
  const server = serveCache({ folder, hostname, port: 0, domains: ['any.test'], tls: { cert: own.crt, key: tlsKey(own.key) } })
  return {
    port: Number(new URL(server.url).port),
    async close() {
      await server.close()
      rmSync(folder, { recursive: true })
    },
  }
}
