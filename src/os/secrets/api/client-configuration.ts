import { fromBase64, year } from '../../../pki/certificate.ts'
import { unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { allRoles, isRole } from '../../../wire/x509/roles.ts'
import { configOf, formatClientConfig, newClientConfig } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { OSRootSecret } from '../resources/os-root-secret.ts'

const defaultName = 'default'

/** Issues credentials for another client of this cluster. Only a control plane node holds the signing key. */
export const generateClientConfiguration = unary(
  'machine.MachineService/GenerateClientConfiguration',
  ['os:admin'],
  ({ roles, crtTtl }, { store }) => {
    const refuse = (status: 'InvalidArgument' | 'FailedPrecondition', detail: string): never => {
      throw new RpcError(status, `generate client configuration: ${detail}`)
    }
    const unknown = roles.find((role) => !isRole(role))
    if (unknown !== undefined) refuse('InvalidArgument', `"${unknown}" is not a role: there are ${allRoles.join(', ')}`)
    if (roles.length === 0) refuse('InvalidArgument', `no roles: there are ${allRoles.join(', ')}`)
    const lifetime = (crtTtl?.seconds ?? 0) * 1000 + (crtTtl?.nanos ?? 0) / 1e6 || year
    if (lifetime <= 0) refuse('InvalidArgument', 'the lifetime of the certificate is not positive')
    const os = store.get(OSRootSecret, 'os')?.spec.issuingCA
    if (!os?.key) return refuse('FailedPrecondition', 'this machine holds no authority: ask a control plane')
    const clusterName = configOf(store.get(MachineConfig, 'v1alpha1'))?.v1alpha1?.cluster?.clusterName || defaultName
    const made = newClientConfig(os, { clusterName, roles, lifetime })
    const context = made.contexts[clusterName]
    if (!context) return refuse('FailedPrecondition', `the configuration has no context "${clusterName}"`)
    const { ca, crt, key } = context
    const bytes = (text: string) => Buffer.from(text)
    const pem = (value: string) => bytes(fromBase64(value))
    return { messages: [{ ca: pem(ca), crt: pem(crt), key: pem(key), talosconfig: bytes(formatClientConfig(made)) }] }
  },
)
