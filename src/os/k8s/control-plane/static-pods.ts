/** The three pods of the control plane as Kubernetes objects. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import type { APIServerConfig } from '../resources/api-server-config.ts'
import type { ControllerManagerConfig } from '../resources/controller-manager-config.ts'
import type { SchedulerConfig } from '../resources/scheduler-config.ts'
import {
  apiServerArguments,
  auditFolder,
  type Component,
  configFolder,
  controllerManagerArguments,
  controlPlane,
  schedulerArguments,
  secretsFolder,
} from './arguments.ts'

/** Versions that a pod carries, so that it is restarted when its inputs change. */
export interface PodVersions {
  secrets: string
  config: string
  configFiles?: string
}

/** kube-apiserver's pod. */
export function apiServerPod(config: SpecOf<typeof APIServerConfig>, versions: PodVersions): KubeObject {
  return pod('kube-apiserver', config, apiServerArguments(config), versions, {
    config: true,
    volumes: [{ name: 'audit', hostPath: auditFolder, mountPath: auditFolder, readonly: false }],
    capabilities: ['NET_BIND_SERVICE'],
    // The server waits for its watchers, which wait for it: everything else is done long before.
    gracePeriod: 10,
  })
}

/**
 * Probed often, so that a component becomes ready without delay; a minute to start. Not at once: the first node of a new cluster
 * becomes ready a second later, and readiness on a node that is not ready is reset for up to ten seconds.
 */
const startup = { initialDelaySeconds: 2, periodSeconds: 1, failureThreshold: 60 }

/** kube-controller-manager's pod. */
export function controllerManagerPod(config: SpecOf<typeof ControllerManagerConfig>, versions: PodVersions): KubeObject {
  const healthz = probe(10257, '/healthz')
  return pod('kube-controller-manager', config, controllerManagerArguments(config), versions, {
    probes: { startupProbe: { ...healthz, ...startup }, livenessProbe: { ...healthz, timeoutSeconds: 15 } },
  })
}

/** kube-scheduler's pod. */
export function schedulerPod(config: SpecOf<typeof SchedulerConfig>, versions: PodVersions): KubeObject {
  const separate = minorVersion(config.image) >= 31
  const live = probe(10259, separate ? '/livez' : '/healthz')
  const ready = probe(10259, separate ? '/readyz' : '/healthz')
  return pod('kube-scheduler', config, schedulerArguments(config), versions, {
    config: true,
    probes: {
      startupProbe: { ...live, ...startup },
      livenessProbe: { ...live, timeoutSeconds: 15 },
      readinessProbe: { ...ready, timeoutSeconds: 15, periodSeconds: 2 },
    },
  })
}

interface Volume {
  name: string
  hostPath: string
  mountPath: string
  readonly: boolean
}

interface PodDetails {
  config?: boolean
  volumes?: Volume[]
  capabilities?: string[]
  /** Termination grace period in seconds; thirty if not given. */
  gracePeriod?: number
  probes?: Record<string, unknown>
}

type ComponentSpec = Pick<SpecOf<typeof ControllerManagerConfig>, 'image' | 'extraVolumes' | 'environmentVariables' | 'resources'>

function pod(component: Component, spec: ComponentSpec, args: string[], versions: PodVersions, details: PodDetails): KubeObject {
  const { uid, cpu, memory } = controlPlane[component]
  const own: Volume[] = [
    { name: 'secrets', hostPath: secretsFolder(component), mountPath: secretsFolder(component), readonly: true },
    ...(details.config ? [{ name: 'config', hostPath: configFolder(component), mountPath: configFolder(component), readonly: true }] : []),
    ...(details.volumes ?? []),
  ]
  const volumes = [...own, ...spec.extraVolumes]
  const requests = { ...spec.resources.requests, cpu: spec.resources.requests.cpu || cpu, memory: spec.resources.requests.memory || memory }
  const limits = spec.resources.limits
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: component,
      namespace: 'kube-system',
      annotations: {
        'talos.dev/secrets-version': versions.secrets,
        'talos.dev/config-version': versions.config,
        ...(versions.configFiles !== undefined && { 'talos.dev/config-file-version': versions.configFiles }),
      },
      labels: {
        tier: 'control-plane',
        'k8s-app': component,
        component,
        'app.kubernetes.io/name': component,
        'app.kubernetes.io/version': labelValue(spec.image),
        'app.kubernetes.io/component': 'control-plane',
        'app.kubernetes.io/managed-by': 'Talos',
      },
    },
    spec: {
      priority: 2000000000,
      priorityClassName: 'system-cluster-critical',
      hostNetwork: true,
      ...(details.gracePeriod && { terminationGracePeriodSeconds: details.gracePeriod }),
      securityContext: { runAsNonRoot: true, runAsUser: uid, runAsGroup: uid, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: component,
          image: spec.image,
          command: [component, ...args],
          env: [
            ...Object.entries(spec.environmentVariables)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              // The kubelet would expand `$(NAME)`: a doubled dollar is a literal one.
              .map(([name, value]) => ({ name, value: value.replaceAll('$', '$$$$') })),
            { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
            ...memoryLimit(limits.memory),
          ],
          volumeMounts: volumes.map(({ name, mountPath, readonly }) => ({ name, mountPath, ...(readonly && { readOnly: true }) })),
          resources: { requests, ...(Object.keys(limits).length > 0 && { limits }) },
          ...details.probes,
          // The kubelet then reports why a component exited, also when its log cannot be reached.
          terminationMessagePolicy: 'FallbackToLogsOnError',
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'], ...(details.capabilities && { add: details.capabilities }) },
            seccompProfile: { type: 'RuntimeDefault' },
          },
        },
      ],
      volumes: volumes.map(({ name, hostPath }) => ({ name, hostPath: { path: hostPath } })),
    },
  }
}

function probe(port: number, path: string): Record<string, unknown> {
  return { httpGet: { path, host: 'localhost', port, scheme: 'HTTPS' } }
}

function minorVersion(image: string): number {
  return Number(image.match(/:v?1\.(\d+)/)?.[1] ?? 99)
}

function labelValue(image: string): string {
  const tag = image.split('@')[0]?.match(/:([^:/]+)$/)?.[1] ?? ''
  return tag.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 63)
}

/** Go's soft memory limit, a little below the pod's hard one. */
function memoryLimit(limit: string | undefined): { name: string; value: string }[] {
  const [, digits, unit = ''] = limit?.match(/^(\d+(?:\.\d+)?)([KMGTP]i?|k|m)?$/) ?? []
  const factor = factors[unit]
  if (!digits || factor === undefined) return []
  return [{ name: 'GOMEMLIMIT', value: String(Math.floor(Number(digits) * factor * 0.95)) }]
}

const factors: Record<string, number> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
}
