module ichor.invalid/guestinfo

go 1.26.6

require github.com/vmware/vmw-guestinfo v0.0.0-20220317130741-510905f0efa3
