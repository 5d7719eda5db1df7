/** What other areas may use of this one besides its resources and documents. */

// Logs of containers are found by their names.
export { type ListedContainer, listContainers } from './containers.ts'
// Releases and signatures are pulled with the credentials of the configuration.
export { credentialsOf } from './credentials.ts'
// The daemons of the API limit their memory by their groups.
export { daemonEnvironment } from './daemon-environment.ts'
// Images and containers are in one of these two containerds.
export { criDaemon, hostsFolder, systemDaemon } from './daemons.ts'
// etcd and the kubelet pull their images.
export { ensureImage } from './ensure-image.ts'
// An installation waits for the images that came with the medium.
export { usesImageCache } from './image-cache-use.ts'
// The names by which containerd has images.
export { fullReference } from './image-table.ts'
// Services of other areas run in containers like these.
export { bindMount, hiddenMounts, serviceContainer, systemRoot } from './service-container.ts'
// Services run with the operator's variables.
export { operatorEnvironment } from './service-environment.ts'
// A machine that stops ends its pods first.
export { stopPods } from './stop-pods.ts'
