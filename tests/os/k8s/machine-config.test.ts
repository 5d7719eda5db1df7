import { expect, test } from 'bun:test'
import { declared } from '../../../src/os/config/declared.ts'
import { configOf } from '../../../src/os/config/parse.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { configAdmissionControl } from '../../../src/os/k8s/controllers/control-plane/admission-control-config.ts'
import { configApiServer } from '../../../src/os/k8s/controllers/control-plane/api-server-config.ts'
import { configAuditPolicy } from '../../../src/os/k8s/controllers/control-plane/audit-policy-config.ts'
import { configAuthorization } from '../../../src/os/k8s/controllers/control-plane/authorization-config.ts'
import { configKubelet } from '../../../src/os/k8s/controllers/kubelet/kubelet-config.ts'
import { kubernetesConfigOf } from '../../../src/os/k8s/machine-config.ts'
import { AdmissionControlConfig } from '../../../src/os/k8s/resources/admission-control-config.ts'
import { APIServerConfig } from '../../../src/os/k8s/resources/api-server-config.ts'
import { AuditPolicyConfig } from '../../../src/os/k8s/resources/audit-policy-config.ts'
import { AuthorizationConfig } from '../../../src/os/k8s/resources/authorization-config.ts'
import { KubeletConfig } from '../../../src/os/k8s/resources/kubelet.ts'
import { StaticPodServerStatus } from '../../../src/os/k8s/resources/static-pod.ts'
import { controlPlane, machineWith } from './machine.ts'

const controllers = [configAdmissionControl, configApiServer, configAuditPolicy, configAuthorization, configKubelet]

async function specs(cluster: string, machine = '') {
  const { store, settled } = machineWith(controllers, controlPlane(machine, cluster))
  store.put(StaticPodServerStatus, 'static-pod-server-status', { url: 'http://127.0.0.1:1' })
  await settled()
  return {
    config: store.get(MachineConfig, 'v1alpha1')!,
    admission: store.get(AdmissionControlConfig, 'admission-control')?.spec,
    apiServer: store.get(APIServerConfig, 'kube-apiserver')?.spec,
    audit: store.list(AuditPolicyConfig)[0]?.spec,
    authorization: store.list(AuthorizationConfig)[0]?.spec,
    kubelet: store.get(KubeletConfig, 'kubelet')?.spec,
  }
}

const hardening = `
    admissionControl:
      - name: PodSecurity
        configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: restricted}}
    auditPolicy: {apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}
    authorizationConfig: [{type: Webhook, name: ours, webhook: {timeout: 3s}}]
    extraArgs: {v: 0777, profiling: false, feature-gates: [A=true, B=false]}
    extraVolumes: [{hostPath: /a, mountPath: /b}]`

test('what merge keys bring into cluster.apiServer reaches the controllers of Kubernetes as if it were written out', async () => {
  const written = await specs(`apiServer:\n    certSANs: [a]${hardening}`)
  const merged = await specs(`apiServer:\n    certSANs: [a]\n    <<:${hardening.replaceAll('\n', '\n  ')}`)
  const { config: _, ...expected } = written
  const { config, ...found } = merged
  expect(found).toEqual(expected)
  expect(found.admission?.config.map(({ name }) => name)).toEqual(['PodSecurity'])
  expect(found.audit).toMatchObject({ config: { rules: [{ level: 'RequestResponse' }] } })
  expect(found.authorization?.config.map(({ name }) => name)).toEqual(['node', 'rbac', 'ours'])
  expect(found.apiServer?.extraArgs).toEqual({
    v: { values: ['0777'] },
    profiling: { values: ['false'] },
    'feature-gates': { values: ['A=true', 'B=false'] },
  })
  // The very object that was validated.
  expect(kubernetesConfigOf(config)?.cluster).toBe(configOf(config).v1alpha1!.cluster!)
  expect(declared(config).cluster).toBe(configOf(config).v1alpha1!.cluster!)
})

test('numbers and more than 100 aliases of free values are read once, as they were judged', async () => {
  const aliases = Array.from({ length: 150 }, (_, index) => `      key${index}: *shared\n`).join('')
  const { kubelet, config } = await specs('', `kubelet:\n    extraConfig:\n      maxPods: &shared 0250\n      0x10: 0o17\n${aliases}`)
  const judged = configOf(config).v1alpha1?.machine?.kubelet?.extraConfig
  expect(kubelet?.extraConfig).toEqual(judged!)
  expect(Object.keys(judged!)).toHaveLength(152)
})
