import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { writeBaseSpec, writeConfig } from '../../../src/os/cri/controllers/config-files.ts'
import { configImageCache } from '../../../src/os/cri/controllers/image-cache.ts'
import { configRegistries } from '../../../src/os/cri/controllers/registries.ts'
import { writeRegistries } from '../../../src/os/cri/controllers/registry-files.ts'
import { isRegistryName } from '../../../src/os/cri/documents/registry-name.ts'
import { mergeParts } from '../../../src/os/cri/parts.ts'
import { RegistryConfig } from '../../../src/os/cri/resources/registry-config.ts'
import { parseToml } from '../../../src/os/cri/toml.ts'
import { EtcFileSpec } from '../../../src/os/files/resources/etc-file.ts'

async function node(yaml: string) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const capabilities = { capabilities: () => ({ effective: [], permitted: [], inheritable: [] }) } as never
  runtime.register(
    configImageCache({ mode: 'container', files: {} as never }),
    configRegistries,
    writeRegistries,
    writeConfig({ capabilities }),
    writeBaseSpec,
  )
  store.put(MachineConfig, 'v1alpha1', yaml)
  runtime.start()
  await runtime.settled()
  const file = (id: string) => store.get(EtcFileSpec, `cri/conf.d/${id}`)?.spec.contents
  return { store, file }
}

test('without any mirror the images of the root file system still come first, whatever the registry', async () => {
  const { file } = await node('machine: {}')
  expect(parseToml(file('hosts/_default/hosts.toml')!)).toEqual({
    host: { 'http://127.0.0.1:3172': { capabilities: ['pull', 'resolve'] } },
  })
})

test('mirrors, trust and credentials of both kinds end in the files of containerd', async () => {
  const { store, file } = await node(`machine:
  registries:
    mirrors:
      docker.io: { endpoints: ['https://mirror.local:5000/v2/hub'], overridePath: true }
    config:
      mirror.local:5000: { tls: { ca: Q0EK }, auth: { username: u, password: p } }
---
apiVersion: v1alpha1
kind: RegistryMirrorConfig
name: closed.example:5000
endpoints: [{ url: 'http://10.0.0.1' }]
skipFallback: true
`)
  expect(store.get(RegistryConfig, 'registries')?.spec.mirrors?.['docker.io']?.endpoints?.map(({ endpoint }) => endpoint)).toEqual([
    'http://127.0.0.1:3172',
    'https://mirror.local:5000/v2/hub',
  ])
  expect(parseToml(file('hosts/docker.io/hosts.toml')!)).toEqual({
    server: 'https://registry-1.docker.io',
    host: {
      'http://127.0.0.1:3172': { capabilities: ['pull', 'resolve'] },
      'https://mirror.local:5000/v2/hub': {
        capabilities: ['pull', 'resolve'],
        override_path: true,
        ca: '/etc/cri/conf.d/hosts/docker.io/mirror.local_5000-ca.crt',
      },
    },
  })
  expect(file('hosts/docker.io/mirror.local_5000-ca.crt')).toBe('CA\n')
  expect(parseToml(file('hosts/closed.example_5000_/hosts.toml')!)).toEqual({
    server: 'http://10.0.0.1',
    host: { 'http://127.0.0.1:3172': { capabilities: ['pull', 'resolve'] } },
  })
  const cri = parseToml(file('cri.toml')!) as any
  expect(cri.plugins['io.containerd.cri.v1.images'].registry.configs['mirror.local:5000'].auth).toEqual({ username: 'u', password: 'p' })
  expect(cri.plugins['io.containerd.cri.v1.runtime'].restrict_oom_score_adj).toBe(true)
})

test('a part of the user lies over the rest, and the base specification over containerd’s', async () => {
  const { file } = await node(`machine:
  baseRuntimeSpecOverrides: { process: { rlimits: [{ type: RLIMIT_NOFILE, hard: 1024, soft: 1024 }] } }
  files:
    - path: /etc/cri/conf.d/20-customization.part
      op: create
      content: |
        [plugins."io.containerd.cri.v1.runtime".containerd]
        default_runtime_name = "crun"
`)
  const { containerd } = (parseToml(file('cri.toml')!) as any).plugins['io.containerd.cri.v1.runtime']
  expect(containerd.default_runtime_name).toBe('crun')
  expect(containerd.runtimes.runc.runtime_type).toBe('io.containerd.runc.v2')
  const { process } = JSON.parse(file('base-spec.json')!)
  expect(process.rlimits).toHaveLength(1)
  expect(process.capabilities.bounding).toContain('CAP_CHOWN')
})

test('a part that is no TOML is refused by its name', () => {
  expect(() => mergeParts({}, [{ name: '/etc/cri/conf.d/20-customization.part', text: '[x' }])).toThrow(
    'read "/etc/cri/conf.d/20-customization.part": ',
  )
})

test('names of registries lead to no other folder', () => {
  for (const name of ['docker.io', '*', 'registry.test:5000', '[fd00::1]:5000', 'localhost'])
    expect([name, isRegistryName(name)]).toEqual([name, true])
  for (const name of ['', '..', '../../etc', 'a/b', 'a..b', '.hidden', 'a b', 'a:b', 'a\0'])
    expect([name, isRegistryName(name)]).toEqual([name, false])
})
