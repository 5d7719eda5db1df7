import type { Area } from '../area.ts'
import { ensureImage } from '../cri/public.ts'
import { kubeconfig } from './api/kubeconfig.ts'
import { keepApiEndpoints } from './controllers/api-access/endpoints.ts'
import { serveServiceAccounts } from './controllers/api-access/service-accounts.ts'
import { tryComponentSettings } from './controllers/component-trial.ts'
import { configKubernetesAccess } from './controllers/control-plane/access-config.ts'
import { configAdmissionControl } from './controllers/control-plane/admission-control-config.ts'
import { configApiServer } from './controllers/control-plane/api-server-config.ts'
import { configAuditPolicy } from './controllers/control-plane/audit-policy-config.ts'
import { configAuthorization } from './controllers/control-plane/authorization-config.ts'
import { renderControlPlanePods } from './controllers/control-plane/control-plane-pods.ts'
import { configControllerManager } from './controllers/control-plane/controller-manager-config.ts'
import { renderConfigs } from './controllers/control-plane/render-configs.ts'
import { renderSecrets } from './controllers/control-plane/render-secrets.ts'
import { configScheduler } from './controllers/control-plane/scheduler-config.ts'
import { runKubePrism } from './controllers/kube-prism/kube-prism.ts'
import { configKubePrism } from './controllers/kube-prism/kube-prism-config.ts'
import { findKubePrismEndpoints } from './controllers/kube-prism/kube-prism-endpoints.ts'
import { observeEndpoints } from './controllers/kube-prism/kubernetes-endpoint.ts'
import { configStaticEndpoint } from './controllers/kube-prism/static-endpoint.ts'
import { configStaticPods } from './controllers/kubelet/configured-static-pods.ts'
import { configKubelet } from './controllers/kubelet/kubelet-config.ts'
import { observeKubeletKubeconfig } from './controllers/kubelet/kubelet-kubeconfig.ts'
import { startKubelet } from './controllers/kubelet/kubelet-service.ts'
import { specKubelet } from './controllers/kubelet/kubelet-spec.ts'
import { approveServingCertificates } from './controllers/kubelet/serving-certificates.ts'
import { serveStaticPods } from './controllers/kubelet/static-pod-server.ts'
import { observeStaticPods } from './controllers/kubelet/static-pod-status.ts'
import { configBootstrapManifests } from './controllers/manifests/bootstrap-manifests-config.ts'
import { spreadDns } from './controllers/manifests/dns-spread.ts'
import { loadExtraManifests } from './controllers/manifests/extra-manifests.ts'
import { configExtraManifests } from './controllers/manifests/extra-manifests-config.ts'
import { applyAllManifests } from './controllers/manifests/manifest-apply.ts'
import { renderManifests } from './controllers/manifests/manifests.ts'
import { configAddressFilter } from './controllers/node/address-filter.ts'
import { applyNode } from './controllers/node/node-apply.ts'
import { chooseNodeIP } from './controllers/node/node-ip.ts'
import { configNodeIP } from './controllers/node/node-ip-config.ts'
import { configNodeAnnotations, configNodeCordon, configNodeLabels, configNodeTaints } from './controllers/node/node-specs.ts'
import { observeNode } from './controllers/node/node-status.ts'
import { configNodename } from './controllers/node/nodename.ts'
import { configurePodNetwork } from './controllers/node/pod-network.ts'
import { hiddenMemory } from './kubelet/hidden-memory.ts'
import { resources } from './resource-types.ts'
import { kubeletService } from './services/kubelet.ts'

/** Kubernetes on this node: kubelet, control plane, the manifests of a new cluster, and access to its API. */
export const k8s: Area = {
  name: 'k8s',
  resources,
  parts: (machine) => ({
    services: [kubeletService(machine)],
    methods: [kubeconfig],
    controllers: [
      tryComponentSettings(machine),
      configAddressFilter,
      configKubernetesAccess,
      configApiServer,
      configControllerManager,
      configScheduler,
      configAdmissionControl,
      configAuditPolicy,
      configAuthorization,
      configBootstrapManifests,
      configExtraManifests,
      configStaticPods,
      renderSecrets(machine.kernel),
      renderConfigs(machine.kernel),
      renderControlPlanePods(),
      serveStaticPods(),
      configNodename,
      configNodeIP,
      chooseNodeIP,
      configKubelet,
      specKubelet({ mode: machine.kernel.mode, oomFloor: machine.oomFloor, hiddenMemory: () => hiddenMemory(machine.kernel) }),
      startKubelet(machine, (image, signal) => ensureImage(machine.images, image, { store: machine.store, signal, note: () => {} })),
      observeKubeletKubeconfig(machine.kernel),
      observeNode(machine.kernel),
      observeStaticPods(),
      configurePodNetwork(machine),
      configNodeLabels,
      configNodeAnnotations,
      configNodeTaints,
      configNodeCordon,
      applyNode(machine.kernel),
      approveServingCertificates(),
      configStaticEndpoint,
      observeEndpoints(machine.kernel),
      findKubePrismEndpoints,
      configKubePrism,
      runKubePrism(machine.kernel),
      renderManifests,
      loadExtraManifests(machine),
      applyAllManifests(machine),
      spreadDns(machine),
      serveServiceAccounts(machine),
      keepApiEndpoints(machine),
    ],
  }),
}
