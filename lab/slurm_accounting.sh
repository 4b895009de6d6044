# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # lab/slurm, which sources this, has the rest
# The Slurm that keeps accounts: slurmdbd over a MariaDB that listens on no port, and a few accounts.

# keep_accounts: what lab/slurm has more for it.
keep_accounts() {
    packages+=(slurmdbd mariadb-server-core mariadb-client-core)
    programs+=(slurmdbd sacctmgr mariadbd mariadb-install-db my_print_defaults)
    servers=(munged mariadb slurmdbd slurmctld)
    book=$((port + 19))
    more="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$book
AccountingStoragePass=$cache/run/munge.socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1"
}

# It knows root by his socket, so that there is no password. Nothing here has to outlive the machine.
start_mariadb() {
    local socket=$cache/run/mariadb.socket
    mariadb-install-db --no-defaults --user=root --datadir="$cache/data" --skip-test-db \
        --auth-root-authentication-method=socket --auth-root-socket-user=root >"$cache/log/mariadb-install" 2>&1 9>&- ||
        return 0
    launch mariadb mariadbd --no-defaults --user=root --datadir="$cache/data" --socket="$socket" --skip-networking \
        --pid-file="$cache/run/mariadb.own" --log-error="$cache/log/mariadb.log" --innodb-flush-log-at-trx-commit=0 \
        --innodb-lock-wait-timeout=900
    within 30 test -S "$socket" || true
}

start_slurmdbd() {
    (umask 077 && bookkeeping >"$cache/slurmdbd.conf")
    launch slurmdbd env "MYSQL_UNIX_PORT=$cache/run/mariadb.socket" slurmdbd -D
    ! within 30 has_books || open_accounts || true
}

bookkeeping() {
    cat <<CONF
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$book
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$cache/run/munge.socket
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
PidFile=$cache/run/slurmdbd.own
LogFile=$cache/log/slurmdbd
CONF
}

has_books() {
    timeout 10 sacctmgr -n list cluster >/dev/null 2>&1
}

# Two accounts and two qualities of service: some to name, and some not to.
open_accounts() {
    timeout 10 sacctmgr -i add cluster "$cluster" &&
        timeout 10 sacctmgr -i add qos urgent Priority=100 &&
        timeout 10 sacctmgr -i add account lab,guests Description=lab Organization=lab &&
        timeout 10 sacctmgr -i add user root Account=lab,guests DefaultAccount=lab QOS=normal,urgent DefaultQOS=normal
} >>"$cache/log/sacctmgr" 2>&1
