
1
/
:
	
clients":


server""÷
	total_argé
:


server"*Î
œ
fc_total_symbol_0†
:


server":l
D
1
/
:
	
clients":


server"
federated_sum$
:
	
clients"2
	total_arg-
:


server"2
fc_total_symbol_0