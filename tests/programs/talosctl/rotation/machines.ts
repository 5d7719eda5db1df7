/** Configurations of a small cluster, and machines that hold them. */
import type { ConfigContainer } from '../../../../src/os/config/container.ts'
import { generate } from '../../../../src/os/config/generate/generate.ts'
import { newSecrets } from '../../../../src/os/config/generate/secrets.ts'
import { newCA, toBase64 } from '../../../../src/pki/certificate.ts'
import { newKey } from '../../../../src/pki/key.ts'
import type { EncodedPair } from '../../../../src/programs/talosctl/rotation/authority.ts'

export const secrets = await newSecrets({ serviceAccount: newKey('ecdsa') })
const options = { clusterName: 'test', endpoint: 'https://10.0.0.1:6443', secrets }

export const controlPlane = generate('controlplane', options)
export const worker = generate('worker', options)

/** A new authority as a rotation makes it. */
export function newAuthority(): EncodedPair {
  const { crt, key } = newCA({ subject: { organizations: ['talos'] } })
  return { crt: toBase64(crt), key: toBase64(key) }
}

/** Two control planes and a worker by their names. */
export const cluster = (): Map<string, ConfigContainer> =>
  new Map([
    ['first', controlPlane],
    ['second', controlPlane],
    ['worker', worker],
  ])
