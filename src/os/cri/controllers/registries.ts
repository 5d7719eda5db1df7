import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { DocumentOf } from '../../../document/kind.ts'
import { type Declared, declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { RegistryAuthConfig, RegistryMirrorConfig, RegistryTLSConfig } from '../documents/registry.ts'
import { registryPort } from '../registryd.ts'
import { ImageCacheConfig } from '../resources/image-cache-config.ts'
import { RegistryConfig } from '../resources/registry-config.ts'

type Registries = SpecOf<typeof RegistryConfig>
type Mirrors = NonNullable<Registries['mirrors']>
type Mirror = Mirrors[string]

/** The images of the root file system come before any registry that a reference names. */
const ownImages = { endpoint: `http://127.0.0.1:${registryPort}`, overridePath: false }
const anyRegistry = '*'

/** Registry configuration: mirrors, credentials, trust. */
export const configRegistries: Controller = defineController({
  name: 'cri.RegistriesConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), cache: weak(ImageCacheConfig) },
  outputs: { registries: exclusive(RegistryConfig) },
  reconcile({ config, cache, registries }) {
    if (!cache.get('image-cache')) return
    const given = declared(config.get('v1alpha1'))
    const mirrors: Mirrors = { ...legacyMirrors(given), ...namedMirrors(given) }
    mirrors[anyRegistry] ??= { endpoints: [] }
    registries.put('registries', {
      mirrors: Object.fromEntries(Object.entries(mirrors).map(([name, mirror]) => [name, withOwnImages(mirror)])),
      auths: { ...legacyPart(given, 'auth'), ...namedLogins(given) },
      tls: { ...legacyPart(given, 'tls'), ...namedTrust(given) },
    } as Registries)
  },
})

function withOwnImages(mirror: Mirror): Mirror {
  return { ...mirror, endpoints: [ownImages, ...(mirror.endpoints ?? [])] }
}

function legacyMirrors(given: Declared | undefined): Mirrors {
  const found = given?.machine.registries?.mirrors ?? {}
  return Object.fromEntries(
    Object.entries(found).map(([name, mirror]) => [
      name,
      {
        endpoints: (mirror.endpoints ?? []).map((endpoint) => ({ endpoint, overridePath: mirror.overridePath ?? false })),
        ...(mirror.skipFallback && { skipFallback: true }),
      },
    ]),
  )
}

function namedMirrors(given: Declared | undefined): Mirrors {
  return Object.fromEntries(
    findAll(given, RegistryMirrorConfig).map(({ name = '', endpoints = [], skipFallback }) => [
      name,
      {
        endpoints: endpoints.map(({ url = '', overridePath = false }) => ({ endpoint: url, overridePath })),
        ...(skipFallback && { skipFallback: true }),
      },
    ]),
  )
}

function legacyPart(given: Declared | undefined, part: 'auth' | 'tls'): Record<string, unknown> {
  const found = given?.machine.registries?.config ?? {}
  return Object.fromEntries(Object.entries(found).flatMap(([name, entry]) => (entry[part] ? [[name, entry[part]]] : [])))
}

function namedTrust(given: Declared | undefined): Record<string, unknown> {
  const base64 = (pem: string | undefined) => pem && Buffer.from(pem).toString('base64')
  return Object.fromEntries(
    findAll(given, RegistryTLSConfig).map(({ name = '', clientIdentity, ca, insecureSkipVerify }) => [
      name,
      {
        ...(clientIdentity && { clientIdentity: { crt: base64(clientIdentity.cert), key: base64(clientIdentity.key) } }),
        ...(ca && { ca: base64(ca) }),
        ...(insecureSkipVerify && { insecureSkipVerify }),
      },
    ]),
  )
}

const loginKeys = ['username', 'password', 'auth', 'identityToken'] as const

function namedLogins(given: Declared | undefined): Record<string, unknown> {
  const pick = (document: DocumentOf<typeof RegistryAuthConfig>) =>
    Object.fromEntries(loginKeys.filter((key) => document[key]).map((key) => [key, document[key]]))
  return Object.fromEntries(findAll(given, RegistryAuthConfig).map((document) => [document.name ?? '', pick(document)]))
}
