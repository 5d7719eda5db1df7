import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { formatSecrets, newSecrets } from '../../../../../src/os/config/generate/secrets.ts'
import { newKey } from '../../../../../src/pki/key.ts'
import { type ConfigRequest, checkConfigs, provideConfigs } from '../../../../../src/programs/talosctl/cluster/plan/configs.ts'
import { planCluster } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'
import { request } from './request.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-patches-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const record = planCluster(request(), { kubernetes: 40001, machineApi: 40002 })
const configs = (change: Partial<ConfigRequest>): ConfigRequest => ({
  dnsDomain: 'cluster.local',
  mirrors: [],
  insecureRegistries: [],
  patches: { all: [], controlplane: [], worker: [] },
  requested: true,
  ...change,
})

/** The documents of a worker with these settings, which are valid. */
async function documents(change: Partial<ConfigRequest>): Promise<Record<string, unknown>[]> {
  // The key that new secrets get by default takes seconds to make.
  const secrets = await newSecrets({ serviceAccount: newKey('ecdsa') })
  writeFileSync(join(folder, 'secrets.yaml'), formatSecrets(secrets))
  await checkConfigs(folder, record, configs(change))
  await provideConfigs(folder, record, configs(change))
  return parseAllDocuments(readFileSync(join(folder, 'worker.yaml'), 'utf8')).map((document) => document.toJS())
}

test('a firewall lets clients reach the two APIs, and nodes each other', async () => {
  const made = await documents({ firewall: 'block' })
  expect(made.find(({ kind }) => kind === 'NetworkDefaultActionConfig')).toMatchObject({ ingress: 'block' })
  const rules = made.filter(({ kind }) => kind === 'NetworkRuleConfig')
  const open = rules.filter(({ ingress }) => JSON.stringify(ingress).includes('0.0.0.0/0')).map(({ name }) => name)
  expect(open).toEqual(['apid-ingress', 'kubernetes-api-ingress'])
  expect(rules.find(({ name }) => name === 'etcd-ingress')).toMatchObject({
    portSelector: { ports: ['2379-2380'], protocol: 'tcp' },
    ingress: [{ subnet: '10.5.0.0/24' }],
  })
})

test('the balancer of API servers has the requested port, or is off', async () => {
  const features = async (kubePrismPort: number) =>
    (await documents({ kubePrismPort }))[0]?.machine as { features: { kubePrism: object } } | undefined
  expect((await features(7555))?.features.kubePrism).toMatchObject({ enabled: true, port: 7555 })
  rmSync(join(folder, 'worker.yaml'))
  expect((await features(0))?.features.kubePrism).toMatchObject({ enabled: false })
})

test('registries without verification and an image to install from are in the configuration', async () => {
  const [machine] = await documents({ insecureRegistries: ['registry.test'], installImage: 'registry.test/installer:v1' })
  expect(machine).toMatchObject({
    machine: {
      install: { image: 'registry.test/installer:v1' },
      registries: { config: { 'registry.test': { tls: { insecureSkipVerify: true } } } },
    },
  })
})
