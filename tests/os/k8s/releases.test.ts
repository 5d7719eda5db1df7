/** What the system writes for the programs of Kubernetes is valid in each release that can be built. */
import { describe, expect, test } from 'bun:test'
import { kubernetesImages } from '../../../src/os/config/generate/versions.ts'
import { parseConfig } from '../../../src/os/config/parse.ts'
import { apiServerArguments, controllerManagerArguments, schedulerArguments } from '../../../src/os/k8s/control-plane/arguments.ts'
import { configApiServer } from '../../../src/os/k8s/controllers/control-plane/api-server-config.ts'
import { configControllerManager } from '../../../src/os/k8s/controllers/control-plane/controller-manager-config.ts'
import { configScheduler } from '../../../src/os/k8s/controllers/control-plane/scheduler-config.ts'
import { configKubelet } from '../../../src/os/k8s/controllers/kubelet/kubelet-config.ts'
import { kubeletArguments } from '../../../src/os/k8s/controllers/kubelet/kubelet-spec.ts'
import { configBootstrapManifests } from '../../../src/os/k8s/controllers/manifests/bootstrap-manifests-config.ts'
import { kubeletFieldRules } from '../../../src/os/k8s/documents/kubelet-fields.ts'
import { knownMinors, type Program, settingsOf } from '../../../src/os/k8s/documents/settings.ts'
import { kubeletConfiguration } from '../../../src/os/k8s/kubelet/configuration.ts'
import { APIServerConfig } from '../../../src/os/k8s/resources/api-server-config.ts'
import { BootstrapManifestsConfig } from '../../../src/os/k8s/resources/bootstrap-manifests-config.ts'
import { ControllerManagerConfig } from '../../../src/os/k8s/resources/controller-manager-config.ts'
import { KubeletConfig } from '../../../src/os/k8s/resources/kubelet.ts'
import { SchedulerConfig } from '../../../src/os/k8s/resources/scheduler-config.ts'
import { StaticPodServerStatus } from '../../../src/os/k8s/resources/static-pod.ts'
import { controlPlane, machineWith } from './machine.ts'

const releaseOf = (minor: string) => settingsOf(minor)?.versions.get('kubernetes') ?? ''

/** A control plane whose images have a release. */
function configurationOf(release: string): string {
  const images = kubernetesImages(release)
  const image = (name: keyof typeof images, component = name) => `${component}:\n  image: ${images[name]}\n`
  return controlPlane(
    `${image('kubelet')}features:\n  diskQuotaSupport: true\n`,
    `externalCloudProvider:\n  enabled: true\n${image('apiServer')}${image('controllerManager')}${image('scheduler')}${image('proxy')}`,
  )
}

describe.each([...knownMinors])('Kubernetes %s', (minor) => {
  const release = releaseOf(minor)
  const { flags } = settingsOf(minor)!
  const unknown = (program: Program, args: readonly string[]) =>
    args.map((arg) => /^--([^=]+)/.exec(arg)?.[1] ?? arg).filter((flag) => !flags.get(program)?.has(flag))

  test('has every flag that its components are started with', async () => {
    const { store, settled } = machineWith(
      [configApiServer, configControllerManager, configScheduler, configBootstrapManifests],
      configurationOf(release),
    )
    await settled()
    const api = store.get(APIServerConfig, 'kube-apiserver')!.spec
    expect(api.image).toEndWith(`:v${release}`)
    expect(unknown('kube-apiserver', apiServerArguments(api))).toEqual([])
    expect(unknown('kube-apiserver', apiServerArguments({ ...api, extraArgs: { 'authorization-mode': { values: ['RBAC'] } } }))).toEqual([])
    const manager = store.get(ControllerManagerConfig, 'kube-controller-manager')!.spec
    expect(unknown('kube-controller-manager', controllerManagerArguments(manager))).toEqual([])
    expect(unknown('kube-scheduler', schedulerArguments(store.get(SchedulerConfig, 'kube-scheduler')!.spec))).toEqual([])
    const { proxyArgs } = store.get(BootstrapManifestsConfig, 'manifests')!.spec
    expect(proxyArgs.length).toBeGreaterThan(3)
    expect(unknown('kube-proxy', proxyArgs)).toEqual([])
  })

  test('has every flag and every field that its kubelet is started with', async () => {
    const { store, settled } = machineWith([configKubelet], configurationOf(release))
    store.put(StaticPodServerStatus, 'static-pod-server-status', { url: 'http://127.0.0.1:999' })
    await settled()
    const given = store.get(KubeletConfig, 'kubelet')!.spec
    for (const skipNodeRegistration of [false, true]) {
      const spec = { ...given, skipNodeRegistration, credentialProviderConfig: { kind: 'CredentialProviderConfig' } }
      expect(unknown('kubelet', kubeletArguments(spec, { name: 'cp-1', addresses: ['10.5.0.2'] }))).toEqual([])
      for (const mode of ['metal', 'container'] as const) {
        const taints = [{ key: 'a', value: 'b', effect: 'NoSchedule' as const }]
        const { apiVersion, kind, ...fields } = kubeletConfiguration(spec, { mode, controlPlane: true, taints })
        expect([apiVersion, kind]).toEqual(['kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration'])
        const found: string[] = []
        const report = (_: unknown, message: string) => void found.push(message)
        kubeletFieldRules(fields, given.image, { error: report, warning: report }, [])
        expect(found).toEqual([])
      }
    }
  })

  test('decides which feature gates and flags an image of it may be given', () => {
    const { gates } = settingsOf(minor)!
    const findings = (gate: string, image: string) => {
      const config = controlPlane(`kubelet:\n  image: ${image}\n  extraConfig:\n    featureGates:\n      ${gate}: true\n`)
      const { errors, warnings } = parseConfig(config).validate('container')
      return [...errors.map(({ message }) => message), ...warnings.map(({ message }) => `!${message}`)].filter((text) =>
        text.includes('gate'),
      )
    }
    for (const other of knownMinors) {
      const missing = [...gates].find((gate) => !settingsOf(other)!.gates.has(gate))
      if (!missing) continue
      expect(findings(missing, `ghcr.io/siderolabs/kubelet:v${release}`)).toEqual([])
      expect(findings(missing, `ghcr.io/siderolabs/kubelet:v${releaseOf(other)}`)).toEqual([
        expect.stringContaining(`"${missing}" is not a feature gate`),
      ])
    }
  })
})

test('a release of a known minor that is not recorded itself is judged by it, with warnings', () => {
  const config = controlPlane('', 'apiServer:\n  image: registry.k8s.io/kube-apiserver:v1.35.99\n  extraArgs:\n    no-such-flag: "1"\n')
  const { errors, warnings } = parseConfig(config).validate('container')
  expect(errors.filter(({ message }) => message.includes('flag'))).toEqual([])
  expect(warnings.map(({ message }) => message)).toContainEqual(
    `"no-such-flag" is not a flag of kube-apiserver v${releaseOf('1.35')}, whose flags are known here; the image configured may differ`,
  )
})
