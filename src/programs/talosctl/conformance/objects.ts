/** The Kubernetes objects that run the suite in a cluster. */
import type { KubeObject } from '../../../kube/object.ts'
import type { Pass } from './modes.ts'

/** Everything is in this namespace, or has this name. */
export const namespace = 'conformance'
/** The pod of the suite, and its containers. */
export const podName = 'e2e-conformance-test'
export const suiteContainer = 'conformance-container'
export const outputContainer = 'output-container'

const account = 'conformance-serviceaccount'
const labels = { component: 'conformance' }
const results = '/tmp/results'

/** The images of the pod: the suite, and a shell with tar that hands its results out. */
export interface SuiteImages {
  readonly suite: string
  readonly shell: string
}

/** Account and rights: the suite creates, changes and deletes objects of every kind. */
export function accountObjects(): (KubeObject & { metadata: { name: string } })[] {
  const role = `${account}-role`
  const rbac = 'rbac.authorization.k8s.io'
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace, labels } },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: role, labels },
      rules: [
        { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
        { nonResourceURLs: ['/metrics', '/logs', '/logs/*'], verbs: ['get'] },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: `${account}-binding`, labels },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  ]
}

/**
 * The pod of one pass. The suite writes its results into a shared folder and, last, the file `done`; the second container
 * then writes the archive of the results to its own log, from where any client with access to logs can read it.
 */
export function suitePod({ suite, shell }: SuiteImages, { focus, skip, procs }: Pass): KubeObject {
  const restricted = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    runAsUser: 65534,
    seccompProfile: { type: 'RuntimeDefault' },
  }
  const settings = {
    E2E_FOCUS: focus,
    E2E_SKIP: skip,
    E2E_PROVIDER: 'skeleton',
    E2E_VERBOSITY: '4',
    E2E_USE_GO_RUNNER: 'true',
    E2E_EXTRA_GINKGO_ARGS: `--procs=${procs}`,
    RESULTS_DIR: results,
  }
  const volumeMounts = [{ name: 'output-volume', mountPath: results }]
  const handOut = `until [ -e ${results}/done ]; do sleep 1; done; base64 ${results}/e2e.tar.gz`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, namespace, labels },
    spec: {
      serviceAccountName: account,
      restartPolicy: 'Never',
      tolerations: [{ operator: 'Exists' }],
      volumes: [{ name: 'output-volume', emptyDir: {} }],
      containers: [
        {
          name: suiteContainer,
          image: suite,
          imagePullPolicy: 'IfNotPresent',
          env: Object.entries(settings).map(([name, value]) => ({ name, value })),
          volumeMounts,
          securityContext: restricted,
        },
        { name: outputContainer, image: shell, command: ['/bin/sh', '-c', handOut], volumeMounts, securityContext: restricted },
      ],
    },
  }
}
