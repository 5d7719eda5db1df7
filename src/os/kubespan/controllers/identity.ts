import { parse } from 'yaml'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { HardwareAddress } from '../../network/resources/hardware-address.ts'
import { newPrivateKey, publicKeyOf } from '../keys.ts'
import { meshAddress } from '../mesh.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanIdentity } from '../resources/kube-span-identity.ts'

/** Where the key is kept over restarts, on STATE. */
const identityPath = '/system/state/kubespan-identity.yaml'

/** This node's key, made once and kept for as long as STATE is, and its address, which follows from cluster and network card. */
export const configKubeSpanIdentity = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'> }): Controller =>
  defineController({
    name: 'kubespan.IdentityController',
    inputs: { config: weak(KubeSpanConfig, { id: 'kubespan' }), hardware: weak(HardwareAddress, { id: 'first' }) },
    outputs: { identity: exclusive(KubeSpanIdentity) },
    async reconcile({ config, hardware, identity, log }) {
      const mesh = config.get('kubespan')?.spec
      const card = hardware.get('first')?.spec.hardwareAddr
      if (!mesh?.enabled || !mesh.clusterId || !card) return
      const kept = keptKey(files.readTextIfThere(identityPath))
      const privateKey = kept ?? newPrivateKey()
      const spec = { ...meshAddress(mesh.clusterId, card), privateKey, publicKey: publicKeyOf(privateKey) }
      const text = Object.entries(spec)
        .map(([name, value]) => `${name}: ${value}\n`)
        .join('')
      if (files.readTextIfThere(identityPath) !== text) {
        await files.writeAtomic(identityPath, text, { mode: 0o600 })
        if (!kept) log.info('mesh identity established', { public_key: spec.publicKey, address: spec.address })
      }
      identity.put('local', spec)
    },
  })

/** The key of the file; one that does not read is replaced, for peers learn of the new one. */
function keptKey(text: string | undefined): string | undefined {
  if (!text) return undefined
  try {
    const { privateKey } = parse(text) ?? {}
    if (typeof privateKey !== 'string') return undefined
    publicKeyOf(privateKey)
    return privateKey
  } catch {
    return undefined
  }
}
